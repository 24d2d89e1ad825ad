from .changes import Change as Change
from .errors import DifferentCrawl as DifferentCrawl
from .errors import InUse as InUse
from .files import FileLock as FileLock
from .runs import End as End
from .runs import Run as Run
from .streams import Stream as Stream

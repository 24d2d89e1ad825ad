from .frontier import SharedFrontier as SharedFrontier
from .message import Refused as Refused
from .message import SharedStore as SharedStore
from .redis_store import SharedCounts as SharedCounts
from .redis_store import opened_store as opened_store

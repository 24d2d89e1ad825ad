from .cookies import CookieStore as CookieStore
from .folder import FolderFetch as FolderFetch
from .statistics import FetchStatistics as FetchStatistics
from .statistics import WireStatistics as WireStatistics
from .wrapping import wrapping as wrapping

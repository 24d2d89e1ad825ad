from .cookies import CookieStore as CookieStore
from .folder import FolderFetch as FolderFetch
from .http1.wire import Wire as Wire
from .statistics import CookieStatistics as CookieStatistics
from .statistics import FetchStatistics as FetchStatistics
from .statistics import WireStatistics as WireStatistics
from .tls import Security as Security
from .wrapping import wrapping as wrapping

from .accelerator import has_accelerator as has_accelerator
from .links import Link as Link
from .links import LinkKind as LinkKind
from .links import links_of as links_of

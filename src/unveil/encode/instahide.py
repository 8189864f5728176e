"""The older home of what `unveil.encode` has."""

from unveil.encode.simulate import encode as encode
from unveil.encode.simulate import mix as mix

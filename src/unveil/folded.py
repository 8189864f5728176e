"""The older name of `unveil.engine.folded`."""

from unveil.engine.folded import CERTAIN as CERTAIN
from unveil.engine.folded import PLAIN as PLAIN
from unveil.engine.folded import expected_square as expected_square
from unveil.engine.folded import fold32 as fold32
from unveil.engine.folded import information as information
from unveil.engine.folded import log_2cosh as log_2cosh
from unveil.engine.folded import log_density as log_density
from unveil.engine.folded import lost as lost
from unveil.engine.folded import maximise as maximise
from unveil.engine.folded import rise32 as rise32
from unveil.engine.folded import signed as signed
from unveil.engine.folded import signed32 as signed32
from unveil.engine.folded import tanh32 as tanh32

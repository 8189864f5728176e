"""The older name of `unveil.engine.blocks`."""

from unveil.engine.blocks import Stopwatch as Stopwatch
from unveil.engine.blocks import Where as Where
from unveil.engine.blocks import count_rows as count_rows
from unveil.engine.blocks import free_memory as free_memory
from unveil.engine.blocks import memory_limit as memory_limit
from unveil.engine.blocks import must_fit as must_fit
from unveil.engine.blocks import one_blas_thread as one_blas_thread
from unveil.engine.blocks import rows_per_block as rows_per_block
from unveil.engine.blocks import run_blocks as run_blocks
from unveil.engine.blocks import using as using
from unveil.engine.blocks import where as where
from unveil.engine.blocks import worker_count as worker_count

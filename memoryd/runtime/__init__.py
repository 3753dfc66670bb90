"""What lives in a nursery: an open memory, its writer tasks, prefetch, the barrier, house-keeping."""

from memoryd.runtime._kernel import make_gate as make_gate
from memoryd.runtime._kernel import now_micros as now_micros
from memoryd.runtime._open import OpenRuntime as OpenRuntime
from memoryd.runtime._open import open_runtime as open_runtime
from memoryd.runtime._plugins import available_backends as available_backends
from memoryd.runtime._plugins import registered_backends as registered_backends
from memoryd.runtime._portal import Portal as Portal
from memoryd.runtime._runtime import Runtime as Runtime

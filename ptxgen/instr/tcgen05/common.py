"""The targets that have tensor memory, and what orders work on it."""

from ptxgen.instr.model.targets import Availability

#: Tensor memory itself, and most that works on it.
FAMILY = "sm_100f sm_110f"
#: What is not portable within a family (measured, ptxas 13.5).
SINGLE = "sm_100a sm_103a sm_107a sm_110a"
#: What came with sm_107: .kind::ti16, buffers for B, lookup tables (PTX ISA 9.4, 9.7.18.10).
RUBIN = Availability("9.4", "sm_107f")
#: What the buffers for B need.
COLLECTOR_B = {f"collector::b::{use}": RUBIN for use in ("fill", "use", "lastuse", "discard")}

#: For people: what goes between a tcgen05 operation and those of other threads (PTX ISA 9.7.16.6).
BETWEEN_THREADS = "tcgen05.fence::before_thread_sync, the synchronization, tcgen05.fence::after_thread_sync"
#: What comes before the tensor core reads shared memory, and after its commit.
BY_TENSOR_CORE = (
    "fence.proxy.async before it reads what threads wrote to shared memory; tcgen05.fence::after_thread_sync once its"
    " mbarrier has been waited for"
)

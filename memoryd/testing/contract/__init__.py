"""The backend contract as a suite: any implementation of :class:`memoryd.core.Backend` can be put through it, without pytest.

::

    report = trio.run(run_contract, Subject("mine", memoryd_mine.create))
    assert report.ok, report.failed

``python -m memoryd.testing NAME`` does that for an installed backend.
"""

from memoryd.testing.contract import _manners as _manners
from memoryd.testing.contract import _memories as _memories
from memoryd.testing.contract import _turns as _turns
from memoryd.testing.contract._bench import Bench as Bench
from memoryd.testing.contract._bench import Subject as Subject
from memoryd.testing.contract._report import ContractReport as ContractReport
from memoryd.testing.contract._report import check as check
from memoryd.testing.contract._report import checks as checks
from memoryd.testing.contract._report import run_contract as run_contract
from memoryd.testing.contract._subjects import installed_subject as installed_subject
from memoryd.testing.contract._subjects import subject as subject

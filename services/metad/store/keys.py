"""Keys of the store: readable, and zero-padded so that they sort by number.

1/ is the version of the format::

    1/format                       format of the store
    1/cluster                      id of the cluster; created with the store, so an empty store is
                                   another cluster
    1/folder                       uuid of the metad folder that the catalog belongs to
    1/history                      id of the catalog's history, created with it
    1/revision                     number of the latest write, part of the same write
    1/term/NUMBER                  a start of metad: random id, and the revision that it began with
    1/adoption/NUMBER              positions of other catalogs that this one was adopted over
    1/removal/REMOVAL              a removal request, until every storaged concerned has carried it
                                   out
    1/cleaned/JOB                  a job with leftovers that were requested to be removed
    1/start                        number of the latest start of metad; larger at every start
    1/next/SPACE|LOAD|PIN|REMOVAL  next id of a kind (jobs and tasks: 1/next/JOB)
    1/space/SPACE                  a space, with its partitions and its current version
    1/commit/SPACE                 last commit number of a space
    1/base/SPACE/TYPE              next edge id of an edge type
    1/load/LOAD                    a load, without its chunks
    1/chunk/LOAD/INDEX             a chunk of a load
    1/version/SPACE/VERSION        a manifest
    1/restore/SPACE                manifest that a space created from a backup waits for
    1/host/UUID                    address and incarnation of a daemon, as last changed
    1/job/JOB                      a job with its tasks
    1/result/JOB/TASK              outcome of a finished task, until its job publishes
    1/pin/PIN                      a lease on a version as it was created; renewals are in memory
    1/api-key/KEY                  an API key, with the hash of its secret
    1/grant/SPACE/PRINCIPAL        role of a principal in a space; SPACE 0 is every space
    1/access-limits/SPACE/PRINCIPAL
                                   limits of a principal in a space; SPACE 0 is all spaces together
    1/ended-session/SESSION        a session of the web pages that was signed out, until it expires
"""

from __future__ import annotations

_FORMAT = b"1/"

FORMAT = _FORMAT + b"format"
CLUSTER = _FORMAT + b"cluster"
FOLDER = _FORMAT + b"folder"
START = _FORMAT + b"start"
NEXT_SPACE = _FORMAT + b"next/space"
NEXT_LOAD = _FORMAT + b"next/load"
NEXT_JOB = _FORMAT + b"next/job"
NEXT_TASK = _FORMAT + b"next/task"
NEXT_PIN = _FORMAT + b"next/pin"
NEXT_REMOVAL = _FORMAT + b"next/removal"
COUNTERS = (NEXT_SPACE, NEXT_LOAD, NEXT_JOB, NEXT_TASK, NEXT_PIN, NEXT_REMOVAL)
HISTORY = _FORMAT + b"history"
REVISION = _FORMAT + b"revision"
TERMS = _FORMAT + b"term/"
ADOPTIONS = _FORMAT + b"adoption/"
REMOVALS = _FORMAT + b"removal/"
CLEANED_JOBS = _FORMAT + b"cleaned/"
SPACES = _FORMAT + b"space/"
COMMITS = _FORMAT + b"commit/"
BASES = _FORMAT + b"base/"
LOADS = _FORMAT + b"load/"
CHUNKS = _FORMAT + b"chunk/"
VERSIONS = _FORMAT + b"version/"
RESTORES = _FORMAT + b"restore/"
HOSTS = _FORMAT + b"host/"
JOBS = _FORMAT + b"job/"
RESULTS = _FORMAT + b"result/"
PINS = _FORMAT + b"pin/"
API_KEYS = _FORMAT + b"api-key/"
GRANTS = _FORMAT + b"grant/"
ACCESS_LIMITS = _FORMAT + b"access-limits/"
ENDED_SESSIONS = _FORMAT + b"ended-session/"


def _padded(*numbers: int) -> bytes:
    return b"/".join(b"%020d" % number for number in numbers)


def space_key(space_id: int) -> bytes:
    """Return the key of a space."""
    return SPACES + _padded(space_id)


def commit_key(space_id: int) -> bytes:
    """Return the key of a space's last commit number."""
    return COMMITS + _padded(space_id)


def bases_prefix(space_id: int) -> bytes:
    """Return the key prefix of a space's edge id bases."""
    return BASES + _padded(space_id) + b"/"


def base_key(space_id: int, type_id: int) -> bytes:
    """Return the key of the next edge id of an edge type."""
    return BASES + _padded(space_id, type_id)


def load_key(load_id: int) -> bytes:
    """Return the key of a load."""
    return LOADS + _padded(load_id)


def chunks_prefix(load_id: int) -> bytes:
    """Return the key prefix of a load's chunks."""
    return CHUNKS + _padded(load_id) + b"/"


def chunk_key(load_id: int, index: int) -> bytes:
    """Return the key of one chunk."""
    return CHUNKS + _padded(load_id, index)


def versions_prefix(space_id: int) -> bytes:
    """Return the key prefix of a space's manifests."""
    return VERSIONS + _padded(space_id) + b"/"


def version_key(space_id: int, number: int) -> bytes:
    """Return the key of one manifest."""
    return VERSIONS + _padded(space_id, number)


def restore_key(space_id: int) -> bytes:
    """Return the key of the manifest that a restored space waits for."""
    return RESTORES + _padded(space_id)


def host_key(uuid: str) -> bytes:
    """Return the key of a daemon."""
    return HOSTS + uuid.encode()


def job_key(job_id: int) -> bytes:
    """Return the key of a job."""
    return JOBS + _padded(job_id)


def results_prefix(job_id: int) -> bytes:
    """Return the key prefix of a job's results."""
    return RESULTS + _padded(job_id) + b"/"


def result_key(job_id: int, task_id: int) -> bytes:
    """Return the key of one task's result."""
    return RESULTS + _padded(job_id, task_id)


def pin_key(pin_id: int) -> bytes:
    """Return the key of a pin."""
    return PINS + _padded(pin_id)


def api_key_key(key_id: str) -> bytes:
    """Return the key of an API key."""
    return API_KEYS + key_id.encode()


def grant_key(space_id: int, principal: str) -> bytes:
    """Return the key of a principal's role in a space; space id 0 is every space."""
    return GRANTS + _padded(space_id) + b"/" + principal.encode()


def access_limits_key(space_id: int, principal: str) -> bytes:
    """Return the key of a principal's limits in a space; space id 0 is all spaces together."""
    return ACCESS_LIMITS + _padded(space_id) + b"/" + principal.encode()


def ended_session_key(session_id: str) -> bytes:
    """Return the key of an ended session."""
    return ENDED_SESSIONS + session_id.encode()


def space_number(key: bytes) -> int:
    """Return the space id in the key of a grant or of access limits."""
    return int(key.split(b"/", 3)[2])


def term_key(number: int) -> bytes:
    """Return the key of a term, a start of metad."""
    return TERMS + _padded(number)


def adoption_key(number: int) -> bytes:
    """Return the key of an adoption."""
    return ADOPTIONS + _padded(number)


def removal_key(removal_id: int) -> bytes:
    """Return the key of a removal request."""
    return REMOVALS + _padded(removal_id)


def cleaned_job_key(job_id: int) -> bytes:
    """Return the key that marks a job as cleaned: removal of its leftovers was requested."""
    return CLEANED_JOBS + _padded(job_id)


def last_number(key: bytes) -> int:
    """Return the number that a key ends with."""
    return int(key.rsplit(b"/", 1)[1])

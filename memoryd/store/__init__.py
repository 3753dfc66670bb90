"""SQLite files: profiles, connections and their pragmas, migrations, threads, barriers.  Nobody else imports apsw."""

from memoryd.store._connection import CheckpointMode as CheckpointMode
from memoryd.store._connection import Connection as Connection
from memoryd.store._connection import Params as Params
from memoryd.store._connection import Row as Row
from memoryd.store._connection import connect as connect
from memoryd.store._connection import wal_path as wal_path
from memoryd.store._connection import wal_size as wal_size
from memoryd.store._errors import os_errors as os_errors
from memoryd.store._filesystem import require_platform as require_platform
from memoryd.store._locks import lock_holder as lock_holder
from memoryd.store._migrate import Schema as Schema
from memoryd.store._migrate import backup_path as backup_path
from memoryd.store._migrate import prepare as prepare
from memoryd.store._pragmas import Options as Options
from memoryd.store._profile import ProfileStore as ProfileStore
from memoryd.store._profile import open_profile as open_profile
from memoryd.store._profile import profile_directory as profile_directory
from memoryd.store._queries import load_migrations as load_migrations
from memoryd.store._queries import load_queries as load_queries
from memoryd.store._sync import WalBarrier as WalBarrier
from memoryd.store._sync import free_bytes as free_bytes
from memoryd.store._sync import fsync_directory as fsync_directory
from memoryd.store._sync import private_directory as private_directory
from memoryd.store._sync import write_private as write_private
from memoryd.store._tokenizer import load_tokenizer as load_tokenizer
from memoryd.store._worker import Worker as Worker

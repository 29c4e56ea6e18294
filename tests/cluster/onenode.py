"""A SLURM of one node on loopback, from Debian's packages, without systemd and as root.

Configuration, keys, sockets, spool and logs are in one folder; nothing listens but on 127.0.0.1.
`/etc/slurm/slurm.conf` is a link into it, because Snakemake's plugin takes SLURM_CONF out of the
environment of a job's second half. With accounting, MariaDB and slurmdbd run there, too.
"""

from __future__ import annotations

import argparse
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "munge"]
PROGRAMS = ["slurmctld", "slurmd", "sbatch", "munged"]
ACCOUNTING = {"packages": ["slurmdbd", "mariadb-server"], "programs": ["slurmdbd", "mariadbd"]}
ETC = Path("/etc/slurm")
HOST = platform.node().split(".")[0]

# Whatever a container lacks is left out: cgroups, a data base, more than one machine.
CONF = """\
ClusterName=onenode
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
{accounting}
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=5,defer_batch=no
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
ReturnToService=2
MinJobAge={min_job_age}
KillWait=5
InactiveLimit=0
SlurmctldTimeout=30
SlurmdTimeout=30
DefMemPerCPU=500
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=1-00:00:00 State=UP
"""
NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"
WITH_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=16819
AccountingStoragePass={folder}/run/munge.socket"""
DBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
DbdAddr=127.0.0.1
DbdHost={host}
DbdPort=16819
SlurmUser=root
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StoragePort=0
StorageUser=root
StorageLoc=slurm_acct_db
"""


class CannotError(Exception):
    """One sentence: why there can be no SLURM here."""


def install(*, accounting: bool = False) -> None:
    """Install Debian's packages, if a program is missing."""
    programs = PROGRAMS + ACCOUNTING["programs"] * accounting
    if all(map(shutil.which, programs)):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        missing = " and ".join(name for name in programs if not shutil.which(name))
        raise CannotError(
            f"the tests on SLURM need {missing}: run them as root where apt-get is, or install "
            f"Debian's packages {' '.join(PACKAGES)} first"
        )
    packages = PACKAGES + ACCOUNTING["packages"] * accounting
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", "-q", *command], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise CannotError(f"apt-get {command[0]} failed: {' '.join(last)}")


class OneNode:
    """A SLURM in a folder, with a short path as sockets need it; a context manager."""

    def __init__(
        self, folder: Path, *, cpus: int = 2, accounting: bool = False, min_job_age: int = 300
    ) -> None:
        self.folder, self.accounting = folder, accounting
        self._settings = {"cpus": cpus, "min_job_age": min_job_age}
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> OneNode:
        if os.geteuid() != 0:
            raise CannotError("the tests on SLURM start its daemons as root: run them as root")
        try:
            self._write()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if len(self._started) > 1:  # jobs would outlive the daemons
            self._run("scancel", "--me")
            until = time.monotonic() + 20
            while self._run("squeue", "-h") and time.monotonic() < until:
                time.sleep(0.3)
        for daemon in reversed(self._started):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for name in ("slurm.conf", "cgroup.conf"):
            if (ETC / name).is_symlink() and (ETC / name).readlink() == self.folder / name:
                (ETC / name).unlink()

    def _run(self, *command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout

    def _write(self) -> None:
        for name in ("state", "spool", "log", "run", "munge", "data"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "munge").chmod(0o700)
        key = self.folder / "munge" / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        # The node is refused that has less memory than it is said to have.
        pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        accounting = WITH_ACCOUNTING if self.accounting else NO_ACCOUNTING
        text = CONF.format(
            host=HOST, folder=self.folder, memory=pages // 2**20 - 512,
            accounting=accounting.format(folder=self.folder), **self._settings,
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        (self.folder / "slurmdbd.conf").write_text(DBD.format(host=HOST, folder=self.folder))
        (self.folder / "slurmdbd.conf").chmod(0o600)
        ETC.mkdir(exist_ok=True)
        for name in ("slurm.conf", "cgroup.conf"):
            link = ETC / name
            if link.is_symlink() and not _alive(link.readlink().parent / "run" / "slurmctld.pid"):
                link.unlink()  # of a test that was killed
            if link.is_symlink() or link.exists():
                raise CannotError(f"{link} exists: this machine has a SLURM, which is left alone")
            link.symlink_to(self.folder / name)

    def _daemon(self, *command: str, **environment: str) -> None:
        log = open(self.folder / "log" / f"{command[0]}.out", "ab")
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        daemon = subprocess.Popen(command, cwd="/", env=os.environ | environment, **streams)
        log.close()
        self._started.append(daemon)

    def _start(self) -> None:
        run, munge = self.folder / "run", self.folder / "munge"
        self._daemon(
            "munged", "--foreground", "--force", f"--key-file={munge}/munge.key",
            f"--socket={run}/munge.socket", f"--pid-file={run}/munged.pid",
            f"--log-file={self.folder}/log/munged.log", f"--seed-file={munge}/munged.seed",
        )  # fmt: skip
        self._wait("munge", "-S", f"{run}/munge.socket", "-n")
        if self.accounting:
            self._start_accounting()
        self._daemon("slurmctld", "-D", "-i")
        self._daemon("slurmd", "-D")
        self._wait("sinfo", "-h", "-o", "%t", says="idle")

    def _start_accounting(self) -> None:
        data, socket = self.folder / "data", f"{self.folder}/run/mariadb.socket"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}",
             "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, capture_output=True,
        )  # fmt: skip
        self._daemon(
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-networking",
            f"--socket={socket}", "--innodb-lock-wait-timeout=900",
        )  # fmt: skip
        self._wait("mariadb-admin", "--no-defaults", f"--socket={socket}", "ping")
        conf = str(self.folder / "slurmdbd.conf")
        # The client library looks for the socket here.
        self._daemon("slurmdbd", "-D", SLURM_CONF=conf, MYSQL_UNIX_PORT=socket)
        self._wait("sacctmgr", "-i", "add", "cluster", "onenode", says="")

    def _wait(self, *command: str, says: str = "") -> None:
        until = time.monotonic() + 60
        done = None
        while time.monotonic() < until:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0 and says in done.stdout:
                return
            time.sleep(0.3)
        raise CannotError(f"{command[0]} does not answer: see {self.folder}/log")


def _alive(pid: Path) -> bool:
    try:
        return Path("/proc", pid.read_text().strip()).exists()
    except OSError:
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--accounting", action="store_true", help="install MariaDB and slurmdbd, too"
    )
    try:
        install(accounting=parser.parse_args().accounting)
    except CannotError as error:
        sys.exit(f"Error: {error}.")

#!/usr/bin/env python3
"""Makes the kernel and the first file system of the virtual machine, from Debian's kernel package, which is unpacked and never
installed.

    machine_image.py     makes them if the folder build-rdma-lab has none of the newest kernel that apt knows
"""

import fcntl
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build-rdma-lab"
PACKAGE = "linux-image-amd64"  # depends on the newest kernel; the one for clouds has neither rdma_rxe nor 9p
BUSYBOX = Path("/bin/busybox")  # of busybox-static: the first file system has no libraries
MODULES = (
    "virtio_pci 9pnet_virtio 9p overlay veth bridge sch_netem ib_uverbs ib_umad rdma_ucm rdma_rxe "
    "crc32_generic libcrc32c"  # the device computes checksums by the module that the kernel names crc32
).split()
XZ_MAGIC = b"\xfd7zXZ\0"
PROGRAMS_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # modprobe and depmod are not in the path of a usual user


class ImageError(Exception):
    """The image cannot be made here; the text has the reason."""


@dataclass(frozen=True)
class Image:
    kernel: Path
    first_files: Path
    release: str


def sources_digest():
    """The image is made again when this changes."""
    return hashlib.sha256((HERE / "inside" / "init").read_bytes() + Path(__file__).read_bytes()).hexdigest()


def is_current(made):
    return (made / "digest").exists() and (made / "digest").read_text() == sources_digest()


def find_image(folder=FOLDER):
    """Returns the image that was made last, or None."""
    try:
        release = (folder / "release").read_text().strip()
    except FileNotFoundError:
        return None
    made = folder / release
    return Image(made / "vmlinux", made / "first_files.cpio", release) if (made / "vmlinux").exists() else None


def output_of(command, folder=None):
    environment = {**os.environ, "PATH": PROGRAMS_PATH}
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise ImageError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def release_in_lists():
    try:
        return re.search(r"Depends: linux-image-(\S+)", output_of(["apt-cache", "depends", PACKAGE]))
    except ImageError:
        return None


def update_lists():
    output_of(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", "update"])


def newest_release():
    """Returns the release of the kernel that the package lists of this machine name, such as 6.1.0-56-amd64."""
    if not shutil.which("apt-cache"):
        raise ImageError("the kernel comes from a package of Debian, and this machine has no apt")
    found = release_in_lists()
    if not found and os.geteuid() == 0:
        update_lists()  # a machine may have none, where no package was missing
        found = release_in_lists()
    if not found:
        raise ImageError(f"the package lists do not name a kernel for {PACKAGE} (needs Debian and apt-get update)")
    return found[1]


def download(release, folder):
    """Returns the package file. Lists that are older than the servers' files are brought up to date, which needs root."""
    command = ["apt-get", "-q", "download", f"linux-image-{release}"]
    if os.geteuid() == 0:
        command[1:1] = ["-o", "APT::Sandbox::User=root"]  # the other user may not write into the folder
    try:
        output_of(command, folder)
    except ImageError:
        if os.geteuid() != 0:
            raise
        update_lists()
        output_of(command, folder)
    return next(folder.glob("linux-image-*.deb"))


def decompressed(kernel):
    """Returns the kernel as an ELF file, which QEMU boots without decompression: 2.6 s less when it is emulated."""
    begin = kernel.find(XZ_MAGIC)
    if begin < 0:
        raise ImageError("the kernel is not compressed by xz")
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(kernel[begin:])


def module_files(root, release):
    """Returns the files of the modules, and of those that they need."""
    files = set()
    for module in MODULES:
        lines = output_of(["modprobe", "-d", root, "-S", release, "--show-depends", module]).splitlines()
        files.update(Path(line.split()[1]) for line in lines if line.startswith("insmod"))
    return files


def lay_out_first_files(root, release, folder):
    for name in ("bin", "sbin", "dev", "proc", "sys"):
        (folder / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, folder / "bin" / "busybox")
    # The kernel calls this program for a module that it needs, in this file system.
    (folder / "sbin" / "modprobe").symlink_to("../bin/busybox")
    modules = Path("lib/modules") / release
    for file in module_files(root, release):
        target = folder / modules / file.resolve().relative_to((root / modules).resolve())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(root / modules / name, folder / modules / name)
    output_of(["depmod", "-b", folder, release])
    shutil.copy(HERE / "inside" / "init", folder / "init")
    (folder / "init").chmod(0o755)


def pack(folder, archive):
    """Without compression, which the machine would have to undo slowly."""
    names = "".join(f"{path.relative_to(folder)}\n" for path in sorted(folder.rglob("*")))
    with archive.open("wb") as file:
        subprocess.run(["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"], input=names.encode(), stdout=file, cwd=folder, check=True)


def make(release, folder):
    for program, package in (("dpkg-deb", "dpkg"), ("modprobe", "kmod"), ("cpio", "cpio")):
        if not shutil.which(program, path=PROGRAMS_PATH):
            raise ImageError(f"needs the package {package}")
    if not BUSYBOX.exists():
        raise ImageError("needs the package busybox-static")
    with tempfile.TemporaryDirectory(prefix="making_", dir=folder) as name:
        making = Path(name)
        root, done = making / "package", making / "done"
        output_of(["dpkg-deb", "-x", download(release, making), root])
        output_of(["depmod", "-b", root, release])
        lay_out_first_files(root, release, making / "first_files")
        done.mkdir()
        pack(making / "first_files", done / "first_files.cpio")
        (done / "digest").write_text(sources_digest())
        (done / "vmlinux").write_bytes(decompressed((root / "boot" / f"vmlinuz-{release}").read_bytes()))
        shutil.rmtree(folder / release, ignore_errors=True)
        done.rename(folder / release)


def ensure_image(folder=FOLDER):
    """Returns the image of the newest kernel, made now if it is missing or was made by other sources; where that fails,
    the one that is there."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = find_image(folder)
        try:
            release = newest_release()
            if there and there.release == release and is_current(folder / release):
                return there
            make(release, folder)
        except ImageError as error:
            if not there:
                raise
            print(f"using kernel {there.release}, because the newest one cannot be had: {error}", file=sys.stderr)
            return there
        (folder / "release").write_text(release + "\n")
        if there and there.release != release:
            shutil.rmtree(folder / there.release, ignore_errors=True)
    return find_image(folder)


if __name__ == "__main__":
    try:
        image = ensure_image()
    except ImageError as error:
        sys.exit(f"machine_image.py: {error}")
    size = sum(path.stat().st_size for path in (image.kernel, image.first_files))
    print(f"virtual machine: kernel {image.release}, {size / 1e6:.0f} MB in {image.kernel.parent}")

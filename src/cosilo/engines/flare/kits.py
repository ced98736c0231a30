"""Start-up kits: what the coordinator's processes and a silo's are started from.

FLARE writes its own settings; beside them lies in every kit what it may do here: only the classes of a cosilo
job, no code that comes with a job, no shell commands from outside.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from cosilo.engines.flare.certificates import ORG, Authority, new_key, write_secret
from cosilo.engines.flare.kit_manifest import check_kit, write_manifest
from cosilo.engines.flare.names import ADMIN, AUTHORITY, SERVER
from cosilo.engines.flare.party_files import FederationSettings
from cosilo.errors import ConfigError, RunError

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
]
#: What is taken of all that FLARE writes into a kit.
_TAKEN = ("startup/fed_*.json", "local/resources.json.default", "local/log_config.json.default")


def user_of(federation: str) -> str:
    """FLARE's name for the user who asks for runs."""
    return f"coordinator@{federation.lower()}.{ORG}"


def make_coordinator_kit(settings: FederationSettings, kit: Path) -> None:
    """The coordinator's kit: its authority, its server, and who asks for runs."""
    where, user = settings.coordinator, user_of(settings.name)
    admin = {"name": user, "type": "admin", "org": ORG, "role": "lead"}
    authority = Authority.make(kit / AUTHORITY, settings.name)
    _take(settings.name, where.host, where.port, admin, {where.host: kit / SERVER, user: kit / ADMIN})
    for part, name in ((SERVER, "server"), (ADMIN, "client")):
        startup, key = kit / part / "startup", new_key()
        made = authority.for_server(where.host, key) if part == SERVER else authority.for_admin(user, key)
        write_secret(startup / f"{name}.key", key)
        (startup / f"{name}.crt").write_bytes(made)
        (startup / "rootCA.pem").write_bytes(authority.certificate)
    confine_server(kit / SERVER)
    _write(kit / SERVER, _MADE_FOR, _made_for(settings))
    for part in (AUTHORITY, SERVER, ADMIN):
        write_manifest(kit / part)


def make_silo_kit(kit: Path, federation: str, silo: str, host: str, port: int) -> None:
    """A silo's kit, without its key and certificates."""
    _take(federation, host, port, {"name": silo, "type": "client", "org": ORG}, {silo: kit})
    confine_site(kit)


def _made_for(settings: FederationSettings) -> dict[str, Any]:
    where = settings.coordinator
    return {"name": settings.name, "coordinator": f"{where.host}:{where.port}"}


def check_made_for(settings: FederationSettings, kit: Path) -> None:
    """Raise if a federation is not the one that the coordinator's kit was made for."""
    check_kit(kit)
    made, wanted = _read(kit, _MADE_FOR), _made_for(settings)
    for key, value in wanted.items():
        if made[key] != value:
            raise ConfigError(
                f"{key}: got {value}; the kit is made for {made[key]}; "
                "fix that, or make a new one with cosilo provision, which every silo has to ask again"
            )


def _take(federation: str, host: str, port: int, party: dict[str, Any], kits: dict[str, Path]) -> None:
    """Let FLARE write its settings for some parties of a federation, and take those that are needed.

    The scripts that it writes stay behind: they would start FLARE without what is altered here.
    """
    from nvflare.lighter.constants import CtxKey
    from nvflare.lighter.prov_utils import prepare_builders
    from nvflare.lighter.provision import prepare_project
    from nvflare.lighter.provisioner import Provisioner

    server = {"name": host, "type": "server", "org": ORG, "fed_learn_port": port, "admin_port": port}
    project: dict[str, Any] = {
        "api_version": 3,
        "name": federation,
        "description": f"cosilo federation {federation}",
        "participants": [server, party],
        "builders": _BUILDERS,
    }
    told = _Told()
    with tempfile.TemporaryDirectory() as scratch:
        provisioner = Provisioner(scratch, prepare_builders(project))
        context = provisioner.provision(prepare_project(project), logger=told)
        if context.get(CtxKey.BUILD_ERROR):
            raise RunError(f"provisioning failed: {'; '.join(told.errors)}")
        made = Path(context[CtxKey.CURRENT_PROD_DIR])
        for name, kit in kits.items():
            for path in (path for part in _TAKEN for path in (made / name).glob(part)):
                goal = kit / path.relative_to(made / name)
                goal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                shutil.copyfile(path, goal)


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

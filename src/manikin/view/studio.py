"""MuJoCo Studio's web viewer, showing a session: Studio draws in the browser, this moves the simulation.

Studio's own Run, Pause, Step and Reset buttons steer the session too.
"""

from __future__ import annotations

import hashlib
import http.client
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco.studio import app as studio_app
from mujoco.studio import endpoints, launch_thread, messages, plugin, sim, viewer_protocol
from mujoco.studio.dear_imgui import dear_imgui as imgui
from mujoco.studio.implot import implot

from manikin.compat import studio
from manikin.errors import ConfigError
from manikin.eval.film import camera_of
from manikin.view.contacts import touches
from manikin.view.picture import free_camera
from manikin.view.session import Session
from manikin.view.site import (
    bound,
    called_by_name,
    from_elsewhere,
    is_loopback,
    key_cookie,
    key_for,
    lacks_key,
    page_url,
    with_key,
)

__all__ = ["StudioViewer"]

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
FORCE = int(mujoco.mjtVisFlag.mjVIS_CONTACTFORCE)
OUTSIDE = int(implot.LegendFlags.Outside) | int(implot.LegendFlags.Horizontal)
REFRESH = 0.2  # between changes of the panel's numbers [s]
GREEN, RED = imgui.Vec4(0.15, 0.6, 0.25, 1.0), imgui.Vec4(0.8, 0.25, 0.2, 1.0)


class _Guard:
    """The checks that Studio's server lacks; see :class:`manikin.compat.studio.Guard`."""

    def __init__(self, port: int, key: str | None) -> None:
        self.port, self.key = port, key

    def refusal(self, address: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        host = headers.get("Host")
        if not called_by_name(host, address):
            return 421, "this server answers to localhost only\n"
        if from_elsewhere(headers.get("Origin"), host):
            return 403, "the request comes from another site\n"
        if lacks_key(self.key, self.port, path, headers.get("Cookie")):
            return 401, "the address lacks its key: /?key=...\n"
        return None

    def cookie(self, path: str) -> str | None:
        return key_cookie(self.key, self.port, path)


def _refuses_others(port: int, host: str) -> bool:
    """Ask a server for its state as a page of another site would. Studio's inner workings may change."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = http.client.HTTPConnection(address, port, timeout=30)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    try:
        key = {"Sec-WebSocket-Key": "bm90IGEgc2VjcmV0IGtleQ==", "Origin": "http://elsewhere.invalid"}
        connection.request("GET", "/state", headers={**upgrade, **key})
        return connection.getresponse().status == 403
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class _Steps(plugin.SimPlugin):  # type: ignore[misc]
    """Studio's simulation side: advances the session and hands its row's state over. Runs in the caller's thread."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._shown = -1
        self._model_mark = ""
        self._last_seen: tuple[bool, float] | None = None

    @messages.handler
    def on_load_model(self, event: messages.LoadModelEvent) -> bool:
        """Reload shows the row again; files dropped on the page are not for us."""
        self._model_mark = ""
        self.show()
        return True

    @messages.handler
    def on_step(self, event: messages.StepEvent) -> bool:
        """Let the session's time pass."""
        pause = self.session.advance()
        self.show()
        told = (self.session.playing, self.session.speed)
        if told != self._last_seen:
            self._last_seen = told
            state = sim.PauseState.UNPAUSED if told[0] else sim.PauseState.NORMAL_PAUSED
            self.handle.send_to_viewer(messages.StepControlSnapshot(pause_state=state, speed=100 * told[1]))
        time.sleep(max(0.001, pause))
        return True

    @messages.handler
    def on_step_control(self, event: messages.StepControlSnapshot) -> bool:
        """Studio's own pause and speed."""
        playing = event.pause_state == sim.PauseState.UNPAUSED
        speed = min(100.0, max(0.01, event.speed / 100))
        self._last_seen = (playing, speed)
        self.session.ask("play" if playing else "pause")
        self.session.ask("speed", value=speed)
        return True

    @messages.handler
    def on_single_step(self, event: messages.SingleStepEvent) -> bool:
        """Studio's own step is a control step here."""
        self.session.ask("step")
        return True

    @messages.handler
    def on_reset(self, event: messages.ResetEvent) -> bool:
        """Studio's own reset begins the row's next episode."""
        self.session.ask("reset", seed=None, all=False)
        return True

    @messages.handler
    def on_state(self, event: messages.StateEvent) -> bool:
        """Edits of the state made in the browser would not reach the environment, so they are not shown either."""
        return True

    @messages.handler
    def on_perturb(self, event: messages.PerturbSnapshot) -> bool:
        """Nor pushes with the mouse."""
        return True

    def show(self) -> None:
        """Hand over the row in view if there is news: its state, and its model where that is another."""
        if self._shown == self.session.version and self._model_mark:
            return
        self._shown = self.session.version
        model, data = self.session.look()
        mark = self._mark(model)
        if mark != self._model_mark:
            self._model_mark = mark
            self.handle.set_model(model, data=data)
            return
        state = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, state, STATE)
        mujoco.mj_setState(self.handle.model, self.handle.data, state, STATE)

    def _mark(self, model: mujoco.MjModel) -> str:
        """Tells models apart. Rows that vary have each a model of its own, for a new one at every look."""
        for part in self.session.env.parts():
            if model is part.env.scene.model:
                return f"scene {part.env.scene.hash}"
        buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, buffer)
        return hashlib.blake2b(buffer.tobytes(), digest_size=12).hexdigest()


class _Panel(plugin.ViewerPlugin):  # type: ignore[misc]
    """The window with what Studio does not know: rows, seeds, rewards. Runs in the viewer's thread."""

    def __init__(self, session: Session) -> None:
        self.session, self._seed, self._use_seed, self._all = session, 0, False, False
        self._contacts: list[tuple[str, str, float]] = []
        self._aimed, self._status, self._due = False, session.status, 0.0

    @messages.handler(priority=0)  # after the app has put the camera where it likes
    def on_post_model(self, event: messages.PostModelEvent) -> None:
        """Begin with the view of the scene's camera for people, to turn about what moves."""
        if self._aimed or event.model.nbody < 2:
            return
        self._aimed = True
        aim = free_camera(event.model, event.data, camera_of(self.session.env))
        camera = self.viewer.camera
        camera.lookat[:] = aim.target
        camera.distance = aim.distance
        camera.azimuth = math.degrees(aim.turn) + 180  # of where it looks, not of where it stands
        camera.elevation = -math.degrees(aim.tilt)

    @messages.handler
    def on_update(self, event: messages.UpdateEvent) -> None:
        """Take the numbers to show, a few times a second: what changes is sent, and slow browsers fall behind."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due, self._status = now + REFRESH, self.session.status
        self._contacts = [(*t.names, t.newtons) for t in touches(self.viewer.model, self.viewer.data)[:8]]

    @messages.handler
    def on_build_gui(self, event: messages.BuildGuiEvent) -> None:
        """Submit the window."""
        status = self._status
        imgui.SetNextWindowPos(imgui.Vec2(10, 34), int(imgui.Cond.FirstUseEver))
        imgui.SetNextWindowSize(imgui.Vec2(330, 620), int(imgui.Cond.FirstUseEver))
        opened = imgui.Begin(f"{status['task']}###manikin")
        if opened[0] if isinstance(opened, tuple) else opened:
            self._build_episode_gui(status)
            self._build_reward_gui(status)
            self._build_contacts_gui()
        imgui.End()

    def _build_episode_gui(self, status: dict[str, Any]) -> None:
        ask = self.session.ask
        imgui.TextUnformatted(f"{status['robot']}, {status['control']}, {status['policy']}")
        if status["num_envs"] > 1:
            labels = [f"{i}  {word}" for i, word in enumerate(status["words"])]
            imgui.SetNextItemWidth(170)
            changed, row = imgui.Combo("environment", status["row"], labels)
            if changed:
                ask("row", value=row)
        if imgui.Button(f"{'Pause' if status['playing'] else 'Play'}###play"):
            ask("toggle")
        imgui.SameLine()
        if imgui.Button("Step"):
            ask("step")
        imgui.SameLine()
        if imgui.Button("Reset"):
            ask("reset", seed=self._seed if self._use_seed else None, all=self._all)
        if status["num_envs"] > 1:
            imgui.SameLine()
            _, self._all = imgui.Checkbox("all", self._all)
        _, self._use_seed = imgui.Checkbox("###use_seed", self._use_seed)
        imgui.SameLine()
        imgui.BeginDisabled(not self._use_seed)
        imgui.SetNextItemWidth(130)
        _, seed = imgui.InputInt("seed", self._seed)
        self._seed = max(0, seed)
        imgui.EndDisabled()
        changed, again = imgui.Checkbox("go on with the next episode", status["again"])
        if changed:
            ask("again", value=again)
        self._build_camera_gui()
        imgui.SeparatorText("episode")
        seed = f"{status['seed']}" + (f", episode {status['index']}" if status["index"] else "")
        imgui.TextUnformatted(f"seed {seed}   step {status['step']} of {status['horizon']}")
        if status["word"] != "running":
            imgui.TextColored(GREEN if status["word"] == "success" else RED, status["word"])
        else:
            imgui.TextUnformatted("running")
        on = [name.replace("_", " ") for name, value in status["flags"].items() if value]
        imgui.TextUnformatted(", ".join(on) or "-")

    def _build_camera_gui(self) -> None:
        viewer = self.viewer
        names = ["free", *(viewer.model.camera(i).name for i in range(viewer.model.ncam))]
        fixed = viewer.camera.type == int(mujoco.mjtCamera.mjCAMERA_FIXED)
        imgui.SetNextItemWidth(170)
        changed, number = imgui.Combo("camera", viewer.camera.fixedcamid + 1 if fixed else 0, names)
        if changed:
            studio.choose_camera(viewer, number - 1)
        flags = viewer.vis_options.flags
        changed, forces = imgui.Checkbox("contact forces", bool(flags[FORCE]))
        if changed:
            flags[FORCE] = forces

    def _build_reward_gui(self, status: dict[str, Any]) -> None:
        imgui.SeparatorText("reward")
        imgui.TextUnformatted(f"now {status['reward']:.3f}   sum {status['return']:.2f}")
        history, terms = status["history"], status["terms"]
        names = list(terms) or ["reward"]
        if implot.BeginPlot("##rewards", imgui.Vec2(-1, 170)):
            implot.SetupLegend(int(implot.Location.North), OUTSIDE)
            implot.SetupAxes("", "", 0, int(implot.AxisFlags.AutoFit))
            implot.SetupAxisLimits(0, 0, status["horizon"], int(implot.Cond.Always))
            steps = [float(entry["step"]) for entry in history]
            for name in names:
                implot.PlotLine(name, steps, [float(entry.get(name, 0.0)) for entry in history])
            implot.EndPlot()
        if terms and imgui.BeginTable("##terms", 2):
            for name, value in terms.items():
                imgui.TableNextRow()
                imgui.TableNextColumn()
                imgui.TextUnformatted(name.replace("_", " "))
                imgui.TableNextColumn()
                imgui.TextUnformatted(f"{value:8.3f}")
            imgui.EndTable()

    def _build_contacts_gui(self) -> None:
        imgui.SeparatorText("contacts")
        if not self._contacts:
            imgui.TextUnformatted("none")
        elif imgui.BeginTable("##contacts", 2):
            for first, second, newtons in self._contacts:
                imgui.TableNextRow()
                imgui.TableNextColumn()
                imgui.TextUnformatted(f"{second} on {first}")
                imgui.TableNextColumn()
                imgui.TextUnformatted(f"{newtons:8.2f} N")
            imgui.EndTable()


class StudioViewer:
    """Serves a session through MuJoCo Studio's web viewer.

    Studio asks for no password: whoever reaches the port controls the viewer and can upload files to it. So it listens
    on this machine only unless told otherwise, and requests that pages of other sites make, or that come by another
    name than this machine's, are refused. One at a time per process, closed before the next.

    Args:
        session: what is shown.
        host: address to listen on.
        port: 0 is the first free one from 8080 on.

    Raises:
        ConfigError: the port is taken.
    """

    def __init__(self, session: Session, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.session, self.host = session, host
        listening = bound(host, port)  # so that a port that is taken is told here, and not by Studio's thread
        self.port: int = listening.getsockname()[1]
        listening.close()
        config = viewer_protocol.ViewerConfig(title="manikin view", http_port=self.port)
        self._steps = _Steps(session)
        # Studio's own panes begin hidden (Tab and Shift+Tab show them): room for ours, and less to send.
        app = studio_app.App(studio_app.Config(show_options=False, show_inspector=False))
        ours = self._ours = [app, _Panel(session)]
        self.key = key_for(host)
        chosen = studio.guarded_viewer(host, _Guard(self.port, self.key))

        def target(endpoint: endpoints.ViewerEndpoint) -> None:
            viewer = chosen(config, endpoint, plugins=ours)
            where = studio.listening_address(viewer)
            if is_loopback(host) and not is_loopback(where):
                viewer.close()
                raise ConfigError(
                    f"MuJoCo Studio listens on {where} instead of {host}, which may expose it; use --viewer stream"
                )
            if not _refuses_others(self.port, where):
                viewer.close()
                raise ConfigError(
                    "MuJoCo Studio answers requests from other websites, which is not safe; use --viewer stream"
                )
            viewer_protocol.run_viewer_loop(viewer)

        self._handle = launch_thread.launch_thread(target, sim_plugins=[self._steps])
        self._steps.show()

    @property
    def url(self) -> str:
        """Address of the page."""
        return page_url(self.host, self.port)

    @property
    def link(self) -> str:
        """Address of the page with its key, for people who may come."""
        return with_key(self.url, self.key)

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until ``stop()`` or until Studio is quit. The thread that calls this owns the simulation."""
        while not stop() and self._handle.is_running():
            self._handle.sync()

    def close(self) -> None:
        """Stop serving. Idempotent."""
        self._handle.close()
        studio.free_plugins(self._ours)

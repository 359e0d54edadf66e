"""An arm of six joints as URDF text, in parts that a test can change."""

from __future__ import annotations


def link(name: str, mass: float = 1.0, *, size: str = ".05 .05 .2", at: float = 0.1, inertia: bool = True) -> str:
    ixx = mass * 0.01
    text = f'<inertial><mass value="{mass}"/><origin xyz="0 0 {at}"/>' if inertia else ""
    text += f'<inertia ixx="{ixx}" iyy="{ixx}" izz="{ixx}" ixy="0" ixz="0" iyz="0"/></inertial>\n  ' if inertia else ""
    shape = f'<origin xyz="0 0 {at}"/><geometry><box size="{size}"/></geometry>'
    return f'<link name="{name}">\n  {text}<collision>{shape}</collision><visual>{shape}</visual>\n</link>\n'


def joint(
    name: str, parent: str, child: str, z: float, axis: str, *, kind: str = "revolute", limit: str = "", more: str = ""
) -> str:
    limit = limit or 'lower="-2.5" upper="2.5" effort="60" velocity="2"'
    return (
        f'<joint name="{name}" type="{kind}">\n  <parent link="{parent}"/><child link="{child}"/>\n'
        f'  <origin xyz="0 0 {z}"/><axis xyz="{axis}"/>\n  <limit {limit}/>{more}\n</joint>\n'
    )


def arm_text(**changes: str) -> str:
    """Six joints, 0.25 m apart, the wrist shorter."""
    parts = {f"link{i}": link(f"link{i}") for i in range(4)}
    parts |= {f"link{i}": link(f"link{i}", 0.5, size=".04 .04 .06", at=0.04) for i in (4, 5, 6)}
    places = [(0.2, "0 0 1"), (0.2, "0 1 0"), (0.25, "0 1 0"), (0.25, "0 0 1"), (0.1, "0 1 0"), (0.1, "0 0 1")]
    parts |= {
        f"joint{i}": joint(f"joint{i}", f"link{i - 1}", f"link{i}", z, axis) for i, (z, axis) in enumerate(places, 1)
    }
    parts |= changes
    return '<?xml version="1.0"?>\n<robot name="six">\n' + "".join(parts.values()) + "</robot>\n"


REST = (0.0, 0.6, 1.2, 0.0, 1.34, 0.0)
OPTIONS = dict(
    rest=REST,
    flange_pos=(0, 0, 0.08),
    base_pos=(-0.5, 0, 0),
    excludes=(("link3", "link5"), ("link4", "link6")),
)

"""A walker of a user's own: a box on four legs of two joints, as an MJCF."""

from __future__ import annotations


def walker_text(*, floats: bool = True) -> str:
    """Each leg: 0.2 m thigh and shank, a foot of 2 cm; 9.6 kg in all."""
    legs = "".join(
        f"""
      <body name="{side}{end}_thigh" pos="{x} {y} 0">
        <joint name="{side}{end}_hip" axis="0 1 0" range="-1 1.5"/>
        <geom type="capsule" size="0.02" fromto="0 0 -0.03 0 0 -0.17" mass="0.5"/>
        <body name="{side}{end}_shank" pos="0 0 -0.2">
          <joint name="{side}{end}_knee" axis="0 1 0" range="-2.2 -0.3"/>
          <geom type="capsule" size="0.015" fromto="0 0 -0.03 0 0 -0.18" mass="0.3"/>
          <geom type="sphere" size="0.02" pos="0 0 -0.2" mass="0.1"/>
        </body>
      </body>"""
        for end, x in (("front", 0.2), ("rear", -0.2))
        for side, y in (("left_", 0.12), ("right_", -0.12))
    )
    actuators = "".join(
        f'<position joint="{side}{end}_{joint}" kp="150" kv="6" forcerange="-40 40"/>'
        for end in ("front", "rear")
        for side in ("left_", "right_")
        for joint in ("hip", "knee")
    )
    return f"""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="trunk" pos="0 0 0.4">
      {"<freejoint/>" if floats else ""}
      <geom type="box" size="0.22 0.09 0.04" mass="6"/>{legs}
    </body>
  </worldbody>
  <actuator>{actuators}</actuator>
</mujoco>"""

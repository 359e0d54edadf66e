"""Grains, vessels and other things that are many or not rigid: ``from manikin.props.soft.grains import grains``."""

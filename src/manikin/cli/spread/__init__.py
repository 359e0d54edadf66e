"""Commands whose episodes several processes or machines share: `--on`."""

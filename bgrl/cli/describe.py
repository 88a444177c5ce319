"""`bgrl describe FILE`."""
def run(config, launch):
    print(config)

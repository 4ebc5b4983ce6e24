"""`python -m ptxgen` is the command `ptxgen`."""

from ptxgen.cli.main import main

if __name__ == "__main__":
    main()

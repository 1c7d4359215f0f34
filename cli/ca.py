"""`tapeproxy ca`: the certificate authority, for programs that have to be told about it by hand."""

import click

from tapeproxy.cli.helpflags import HELP
from tapeproxy.tapes.errors import UsageError


@click.command(context_settings=HELP)
@click.option("--export", "text", is_flag=True, help="Print the certificate (PEM), never the key.")
@click.option("--bundle", is_flag=True, help="Print the path of a file with the public roots and ours.")
@click.option("--remove", is_flag=True, help="Delete the authority and its key; the next start makes a new one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(text: bool, bundle: bool, remove: bool, yes: bool) -> int:
    """Show, export or remove the certificate authority.

    It is made once, on this machine, its key is readable by you alone, and `record` and `replay` trust it only in the
    processes they start. Nothing is installed in the system's trust store.
    """
    from tapeproxy.proxy.ca import CertificateAuthority, home

    if text + bundle + remove > 1:
        raise UsageError("--export, --bundle and --remove exclude each other")
    if remove:
        kinds = ("mitmproxy-ca*.pem", "bundle-*.pem", "roots-*.pem", "*.p12")
        paths = sorted(path for kind in kinds for path in home().glob(kind))
        if paths and not yes:
            click.confirm(f"Delete the certificate authority in {home()}?", abort=True, err=True)
        for path in paths:
            path.unlink()
        click.echo(f"tapeproxy: removed {len(paths)} files from {home()}", err=True)
        return 0
    ca = CertificateAuthority.open()
    if text:
        click.echo(ca.certificate.read_text(), nl=False)
    elif bundle:
        click.echo(ca.bundle())
    else:
        click.echo(f"certificate  {ca.certificate}\nbundle       {ca.bundle()}\nSHA-256      {ca.fingerprint}")
    return 0

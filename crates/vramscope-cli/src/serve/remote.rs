//! How a person who has come by SSH reaches the page: with a forwarded port.
//!
//! sshd puts the addresses and ports of both ends into `SSH_CONNECTION`: those of the client, then
//! those of the server (`ssh(1)`, "ENVIRONMENT"). A launcher may pass the variable on to another
//! machine, and the address may mean nothing on the person's machine. So it is printed only if it
//! is one of this machine's, and can belong to it alone.

use std::env;
use std::ffi::OsStr;
use std::net::{IpAddr, UdpSocket};

/// The port of sshd unless its configuration has another.
const SSHD_PORT: u16 = 22;

/// Stands for a machine whose name is not known.
const HOST: &str = "HOST";

/// The SSH session of this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// The name of the user, if it needs no quotes in a shell.
    user: Option<String>,
    /// The address and the port of sshd, if others can reach it there.
    sshd: Option<(IpAddr, u16)>,
}

impl Remote {
    /// The session of this process. `None` without SSH.
    pub(crate) fn of_process() -> Option<Self> {
        let connection = env::var_os("SSH_CONNECTION").filter(|value| !value.is_empty())?;
        let users = ["USER", "LOGNAME"].map(env::var_os);
        Some(Self::new(&connection, users.iter().flatten().map(AsRef::as_ref), is_of_this_machine))
    }

    /// The session that these variables describe.
    fn new<'a>(
        connection: &OsStr,
        users: impl IntoIterator<Item = &'a OsStr>,
        is_own: impl Fn(IpAddr) -> bool,
    ) -> Self {
        let names = users.into_iter().filter_map(OsStr::to_str).find(|name| is_plain(name));
        Self {
            user: names.map(str::to_owned),
            sshd: connection.to_str().and_then(sshd_of).filter(|&(address, _)| is_own(address)),
        }
    }

    /// Tells how to forward the port on the person's own machine and open the address there.
    pub(crate) fn text(&self, port: u16, address: &str) -> String {
        let user = self.user.as_ref().map(|name| format!("{name}@")).unwrap_or_default();
        let (which, option, host) = match self.sshd {
            Some((host, sshd)) => (
                "You may reach this one by another name",
                if sshd == SSHD_PORT { String::new() } else { format!("-p {sshd} ") },
                host.to_string(),
            ),
            None => ("HOST is your name for this one", String::new(), HOST.to_owned()),
        };
        format!(
            "Forward the port on your own machine, if it is not yet. {which}:\n  \
             ssh {option}-L {port}:localhost:{port} {user}{host}\n\
             Then open there:\n  {address}"
        )
    }
}

/// Whether a browser can show a page: on this machine, or over SSH on a display of X11 or Wayland.
pub(crate) fn has_display(remote: Option<&Remote>) -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    remote.is_none() || ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set)
}

/// The address and the port of sshd in a value of `SSH_CONNECTION`. `None` if the value has another
/// form, or if the address means another machine elsewhere: a loopback or a link-local one.
fn sshd_of(connection: &str) -> Option<(IpAddr, u16)> {
    let fields: Vec<&str> = connection.split_ascii_whitespace().collect();
    let [_, _, address, port] = fields[..] else { return None };
    let (address, port) = (address.parse::<IpAddr>().ok()?.to_canonical(), port.parse().ok()?);
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let is_one = !is_local
        && !address.is_loopback()
        && !address.is_unspecified()
        && !address.is_multicast()
        && port != 0;
    is_one.then_some((address, port))
}

/// Whether a network interface of this machine has the address. Nothing is sent.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Whether a shell and ssh take the name as one word, which is no option.
fn is_plain(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with port 8317 of an address, without the last two lines.
    fn told(connection: &str, users: &[&str]) -> String {
        let users = users.iter().map(|name| OsStr::new(*name));
        let remote = Remote::new(OsStr::new(connection), users, |_| true);
        let text = remote.text(8317, "http://127.0.0.1:8317/token/");
        let (told, rest) = text.split_once("\nThen open there:\n").expect("three parts");
        assert_eq!(rest, "  http://127.0.0.1:8317/token/");
        told.to_owned()
    }

    fn command(connection: &str, users: &[&str]) -> String {
        told(connection, users).lines().nth(1).expect("a command").trim_start().to_owned()
    }

    #[test]
    fn the_command_forwards_the_port_to_the_address_of_sshd() {
        assert_eq!(
            told("203.0.113.9 50312 10.0.0.7 22", &["ada"]),
            "Forward the port on your own machine, if it is not yet. You may reach this one by \
             another name:\n  ssh -L 8317:localhost:8317 ada@10.0.0.7"
        );
        let command = |connection| command(connection, &["ada"]);
        let forward = "-L 8317:localhost:8317";
        assert_eq!(command("::1 5 2001:db8::7 22"), format!("ssh {forward} ada@2001:db8::7"));
        assert_eq!(
            command("203.0.113.9 5 10.0.0.7 2222"),
            format!("ssh -p 2222 {forward} ada@10.0.0.7")
        );
        // sshd that listens on IPv6 alone has IPv4 clients in this form.
        assert_eq!(
            command("::ffff:203.0.113.9 5 ::ffff:10.0.0.7 22"),
            format!("ssh {forward} ada@10.0.0.7")
        );
    }

    #[test]
    fn an_address_that_says_nothing_elsewhere_is_not_told() {
        for connection in [
            "203.0.113.9 50312 127.0.0.1 22",
            "::1 50312 ::1 22",
            "fe80::2 50312 fe80::1 22",
            "fe80::2%eth0 50312 fe80::1%eth0 22",
            "169.254.0.1 50312 169.254.0.2 22",
            "203.0.113.9 50312 0.0.0.0 22",
            "203.0.113.9 50312 224.0.0.1 22",
        ] {
            assert_eq!(
                told(connection, &["ada"]),
                "Forward the port on your own machine, if it is not yet. HOST is your name for \
                 this one:\n  ssh -L 8317:localhost:8317 ada@HOST",
                "{connection}"
            );
        }
    }

    #[test]
    fn a_malformed_connection_is_not_told() {
        for connection in [
            "yes",
            "10.0.0.7",
            "203.0.113.9 50312 10.0.0.7",
            "203.0.113.9 50312 10.0.0.7 22 more",
            "203.0.113.9 50312 10.0.0.7 ssh",
            "203.0.113.9 50312 10.0.0.7 70000",
            "203.0.113.9 50312 10.0.0.7 0",
            "203.0.113.9 50312 10.0.0.7;reboot 22",
            "203.0.113.9 50312 UNKNOWN 22",
            "   ",
        ] {
            let command = command(connection, &["ada"]);
            assert_eq!(command, "ssh -L 8317:localhost:8317 ada@HOST", "{connection}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_connection_that_is_no_text_is_not_told() {
        let bytes: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff 1 10.0.0.7 22");
        let remote = Remote::new(bytes, [OsStr::new("ada"), bytes], |_| true);
        assert_eq!(remote, Remote { user: Some("ada".to_owned()), sshd: None });
    }

    #[test]
    fn a_launcher_may_have_passed_the_variable_on_to_another_machine() {
        let connection = OsStr::new("203.0.113.9 50312 10.0.0.7 22");
        let remote = Remote::new(connection, [OsStr::new("ada")], |_| false);
        assert!(remote.text(1, "").contains("\n  ssh -L 1:localhost:1 ada@HOST\n"));
        // 203.0.113.0/24 is for documents, RFC 5737: no machine has an address of it.
        assert!(!is_of_this_machine("203.0.113.9".parse().expect("an address")));
        assert!(is_of_this_machine("127.0.0.1".parse().expect("an address")));
    }

    #[test]
    fn a_user_that_a_shell_would_not_take_as_a_word_is_left_out() {
        let of_user = |users: &[&str]| command("203.0.113.9 5 10.0.0.7 22", users);
        let without = "ssh -L 8317:localhost:8317 10.0.0.7";
        for odd in ["", "$(reboot)", "a b", "-oProxyCommand=reboot", "a\u{1b}[0m", "a;b", "DOM\\a"]
        {
            assert_eq!(of_user(&[odd]), without, "{odd}");
        }
        assert_eq!(of_user(&[]), without);
        assert_eq!(of_user(&["", "ada"]), "ssh -L 8317:localhost:8317 ada@10.0.0.7");
        let mail = "ssh -L 8317:localhost:8317 ada@example.org@10.0.0.7";
        assert_eq!(of_user(&["ada@example.org"]), mail);
    }
}

//! The network interfaces of this machine, by name.

/// The number of an interface; `None` if there is none with this name.
pub(super) fn index(name: &str) -> Option<u32> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )
    .ok()?;
    rustix::net::netdevice::name_to_index(socket, name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there() {
        assert!(index("lo").is_some_and(|index| index > 0));
        for name in ["", "no-such-interface", "a/b", "lo\0"] {
            assert_eq!(index(name), None, "{name:?}");
        }
    }
}

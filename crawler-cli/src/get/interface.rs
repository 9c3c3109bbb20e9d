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

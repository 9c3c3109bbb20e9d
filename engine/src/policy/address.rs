//! Which addresses may be connected to: protects against requests that are directed into the user's own network.
//!
//! The policy checks the address that is given to connect, whatever name or literal it came from, in each form that
//! IPv6 has for an IPv4 address. Behind a proxy, the policy checks the address that the proxy is asked for, if that
//! address is known here.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use crate::hook::Hook;

/// Which addresses may be connected to. By default all of them.
///
/// The last rule that matches an address decides; without one, the base decides ([`allow_all`](Self::allow_all) or
/// [`deny_private`](Self::deny_private)). A hook can only refuse what the rules allow. An IPv6 address that stands for
/// an IPv4 address must be allowed in both forms.
///
/// Behind a proxy, [`HostConfig::addresses`](crate::HostConfig::addresses) holds for the servers, and
/// [`Config::proxy_addresses`](crate::Config::proxy_addresses) for the proxy itself. A SOCKS5 proxy is told addresses, so
/// each server is checked. An HTTP, HTTPS or SOCKS5h proxy is told the host of the URL. A host that is an address or
/// `localhost` is checked. Another name is looked up by the proxy: its addresses are not known here and **cannot be
/// checked**. [`deny_unresolved`](Self::deny_unresolved) refuses such names.
///
/// ```
/// use courser::AddressPolicy;
///
/// let policy = AddressPolicy::deny_private().allow("10.1.0.0/16".parse()?);
/// assert!(policy.allows("93.184.215.14".parse()?));
/// assert!(policy.allows("10.1.2.3".parse()?));
/// assert!(!policy.allows("10.2.0.1".parse()?));
/// assert!(!policy.allows("::ffff:169.254.169.254".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    deny_private: bool,
    deny_unresolved: bool,
    rules: Vec<(Network, bool)>,
    hook: Option<Hook<AddressFn>>,
}

/// Decides whether an address may be connected to.
pub type AddressHook = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;
type AddressFn = dyn Fn(IpAddr) -> bool + Send + Sync;

impl AddressPolicy {
    /// Allows all addresses.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Allows only addresses of the public internet: no loopback, private, shared (CGNAT), link-local, site-local,
    /// multicast, broadcast, unspecified, documentation, benchmarking or reserved addresses, and no metadata services
    /// of clouds.
    pub fn deny_private() -> Self {
        Self {
            deny_private: true,
            ..Self::default()
        }
    }

    /// Allows a network; overrides earlier rules.
    pub fn allow(mut self, network: Network) -> Self {
        self.rules.push((network, true));
        self
    }

    /// Refuses a network; overrides earlier rules.
    pub fn deny(mut self, network: Network) -> Self {
        self.rules.push((network, false));
        self
    }

    /// Refuses the names that a proxy would look up, because their addresses cannot be checked here
    /// ([`ErrorKind::DeniedName`](crate::ErrorKind::DeniedName)). For programs that fetch the URLs of strangers through
    /// an HTTP or SOCKS5h proxy.
    ///
    /// ```
    /// let policy = courser::AddressPolicy::deny_private().deny_unresolved();
    /// assert!(!policy.allows_unresolved());
    /// ```
    pub fn deny_unresolved(mut self) -> Self {
        self.deny_unresolved = true;
        self
    }

    /// Calls `hook` for each address that the rules allow.
    pub fn hook(mut self, hook: AddressHook) -> Self {
        self.hook = Some(Hook(hook));
        self
    }

    /// Whether `ip` may be connected to.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let mut embedded = embedded(ip).into_iter().flatten();
        let in_all_forms = self.allows_form(ip) && embedded.all(|v4| self.allows_form(v4.into()));
        in_all_forms && self.hook.as_ref().is_none_or(|Hook(hook)| hook(ip))
    }

    /// Whether a proxy may be asked for a name that the proxy looks up.
    pub fn allows_unresolved(&self) -> bool {
        !self.deny_unresolved
    }

    fn allows_form(&self, ip: IpAddr) -> bool {
        let ruled = self.rules.iter().rev().find(|(net, _)| net.contains(ip));
        match ruled {
            Some((_, allowed)) => *allowed,
            None => !self.deny_private || is_public(ip),
        }
    }
}

/// The addresses with the same first bits: `10.0.0.0/8`, `fc00::/7`. A single address is a network of one.
///
/// ```
/// let network: courser::policy::Network = "192.168.0.0/16".parse()?;
/// assert!(network.contains("192.168.7.7".parse()?));
/// assert!("192.168.0.0/33".parse::<courser::policy::Network>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Network {
    ip: IpAddr,
    prefix: u8,
}

impl Network {
    /// The addresses whose first `prefix` bits are those of `ip`; `None` if `ip` has fewer bits.
    pub const fn new(ip: IpAddr, prefix: u8) -> Option<Self> {
        let bits = match ip {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        if prefix > bits {
            return None;
        }
        Some(Self { ip, prefix })
    }

    /// Whether `ip` is in the network. IPv4 addresses are in no IPv6 network, and IPv6 addresses in no IPv4 network.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let differing = match (self.ip, ip) {
            // The bits of an IPv4 address come first.
            (IpAddr::V4(net), IpAddr::V4(ip)) => u128::from(net.to_bits() ^ ip.to_bits()) << 96,
            (IpAddr::V6(net), IpAddr::V6(ip)) => net.to_bits() ^ ip.to_bits(),
            _ => return false,
        };
        differing.leading_zeros() >= u32::from(self.prefix)
    }
}

impl From<IpAddr> for Network {
    fn from(ip: IpAddr) -> Self {
        let prefix = if ip.is_ipv4() { 32 } else { 128 };
        Self { ip, prefix }
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let Some((ip, prefix)) = text.split_once('/') else {
            return text.parse().map(IpAddr::into).map_err(|_| BadNetwork);
        };
        let ip = ip.parse().map_err(|_| BadNetwork)?;
        let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|_| digits).ok_or(BadNetwork)?;
        Self::new(ip, prefix).ok_or(BadNetwork)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

/// The text is not a [`Network`].
///
/// ```
/// let error = "10.0.0.0/x".parse::<courser::policy::Network>().unwrap_err();
/// assert_eq!(error.to_string(), "neither an address nor a network such as 10.0.0.0/8");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadNetwork;

impl fmt::Display for BadNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("neither an address nor a network such as 10.0.0.0/8")
    }
}

impl std::error::Error for BadNetwork {}

/// Whether an address is globally reachable according to the IANA special-purpose registries (RFC 6890). An IPv6
/// address that only stands for an IPv4 address is judged by that address.
fn is_public(ip: IpAddr) -> bool {
    let within = |nets: &[Network]| nets.iter().any(|net| net.contains(ip));
    match ip {
        IpAddr::V4(_) => !within(&NOT_PUBLIC_V4),
        IpAddr::V6(ip) if ip.is_unspecified() || ip.is_loopback() => false,
        IpAddr::V6(_) => within(&LAST_32_BITS) || GLOBAL_V6.contains(ip) && !within(&NOT_PUBLIC_V6),
    }
}

/// The IPv4 addresses that an IPv6 address stands for, or leads to.
fn embedded(ip: IpAddr) -> [Option<Ipv4Addr>; 2] {
    let IpAddr::V6(v6) = ip else {
        return [None; 2];
    };
    let bits = v6.to_bits();
    let v4 = |shift: u32| Some(Ipv4Addr::from_bits((bits >> shift) as u32));
    if v6.is_unspecified() || v6.is_loopback() {
        [None; 2]
    } else if LAST_32_BITS.iter().any(|net| net.contains(ip)) || NAT64_LOCAL.contains(ip) {
        [v4(0), None]
    } else if SIX_TO_FOUR.contains(ip) {
        [v4(80), None]
    } else if TEREDO.contains(ip) {
        // The server, and the client, whose bits are inverted (RFC 4380 §4).
        [v4(64), Some(Ipv4Addr::from_bits(!(bits as u32)))]
    } else if matches!(v6.segments(), [.., 0 | 0x200, 0x5efe, _, _]) {
        // ISATAP, with any prefix (RFC 5214 §6.1).
        [v4(0), None]
    } else {
        [None; 2]
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Network {
    let ip = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    Network { ip, prefix }
}

/// The network of an address with these bits.
const fn v6(bits: u128, prefix: u8) -> Network {
    let ip = IpAddr::V6(Ipv6Addr::from_bits(bits));
    Network { ip, prefix }
}

const NOT_PUBLIC_V4: [Network; 18] = [
    v4(0, 0, 0, 0, 8),          // this network (RFC 1122 §3.2.1.3)
    v4(10, 0, 0, 0, 8),         // private (RFC 1918)
    v4(100, 64, 0, 0, 10), // shared by carriers (RFC 6598); Alibaba's metadata 100.100.100.200 is in it
    v4(127, 0, 0, 0, 8),   // loopback
    v4(168, 63, 129, 16, 32), // Azure's metadata
    v4(169, 254, 0, 0, 16), // link-local (RFC 3927); 169.254.169.254 is the metadata of most clouds
    v4(172, 16, 0, 0, 12), // private
    v4(192, 0, 0, 0, 24),  // protocol assignments (RFC 6890); Oracle's metadata 192.0.0.192
    v4(192, 0, 2, 0, 24),  // documentation (RFC 5737)
    v4(192, 88, 99, 0, 24), // relays to 6to4, given up (RFC 7526)
    v4(192, 168, 0, 0, 16), // private
    v4(198, 18, 0, 0, 15), // benchmarking (RFC 2544)
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24), // documentation
    v4(233, 252, 0, 0, 24), // documentation (RFC 6676)
    v4(224, 0, 0, 0, 4),   // multicast
    v4(240, 0, 0, 0, 4),   // reserved (RFC 1112 §4)
    v4(255, 255, 255, 255, 32), // broadcast
];

const GLOBAL_V6: Network = v6(0x2000 << 112, 3);

/// Parts of [`GLOBAL_V6`] that are not public. All other special networks, such as fc00::/7 with AWS's metadata
/// fd00:ec2::254, fe80::/10, fec0::/10 and ff00::/8, are outside of it.
const NOT_PUBLIC_V6: [Network; 5] = [
    v6(0x2001_0002 << 96, 48), // benchmarking (RFC 5180)
    v6(0x2001_0010 << 96, 28), // ORCHID, given up (RFC 4843)
    v6(0x2001_0db8 << 96, 32), // documentation (RFC 3849)
    v6(0x3fff << 112, 20),     // documentation (RFC 9637)
    v6(0x2001_0100 << 96, 24), // unassigned rest of the protocol assignments 2001::/23 (RFC 2928)
];

/// An IPv4 address after a prefix.
const LAST_32_BITS: [Network; 4] = [
    v6(0xffff << 32, 96),    // mapped (RFC 4291 §2.5.5.2)
    v6(0, 96),               // compatible, given up (RFC 4291 §2.5.5.1)
    v6(0xffff << 48, 96),    // translated (RFC 2765 §2.1)
    v6(0x64_ff9b << 96, 96), // NAT64 (RFC 6052 §2.1)
];

/// NAT64 within one network (RFC 8215): never public, and usually with the IPv4 address in the last bits.
const NAT64_LOCAL: Network = v6(0x64_ff9b_0001 << 80, 48);
const SIX_TO_FOUR: Network = v6(0x2002 << 112, 16);
const TEREDO: Network = v6(0x2001_0000 << 96, 32);

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn net(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_not_public() {
        let policy = AddressPolicy::deny_private();
        let refused = [
            "0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1 \
             127.255.255.255 168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.1 \
             192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.7 \
             203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255",
            ":: ::1 ::2 fc00::1 fd00:ec2::254 fdff::1 fe80::1 febf::1 fec0::1 feff::1 ff02::1 2001:db8::1 \
             2001:2::1 2001:10::1 2001:1ff::1 3fff::1 100::1 4000::1 5f00::1 1fff::1 64:ff9b:1::808:808",
            // With an IPv4 address inside.
            "::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 ::127.0.0.1 \
             ::ffff:0:192.168.1.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 2002:7f00:1::1 2002:a9fe:a9fe:: \
             2002:c0a8:101::1",
            // The server is 10.0.0.1; the client is not refused.
            "2001:0:a00:1:0:0:f7f7:f7f7",
            "2001:0:808:808:0:0:f5ff:fffe 2600::5efe:10.0.0.1 2600::200:5efe:127.0.0.1",
        ];
        for text in refused.iter().flat_map(|list| list.split(' ')) {
            assert!(!policy.allows(ip(text)), "{text}");
            assert!(AddressPolicy::allow_all().allows(ip(text)), "{text}");
        }
        let allowed = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
             128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 \
             172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 \
             223.255.255.255 2600::1 2001:4860:4860::8888 2a00::1 2001:20::1 3ffe::1 ::ffff:8.8.8.8 \
             64:ff9b::8.8.8.8 2002:808:808::1 2001:0:808:808:0:0:f7f7:f7f7 2600::5efe:8.8.8.8 \
             2600::100:5efe:10.0.0.1";
        for text in allowed.split(' ') {
            assert!(policy.allows(ip(text)), "{text}");
        }
    }

    #[test]
    fn the_last_rule_decides_and_the_hook_refuses() {
        let policy = AddressPolicy::deny_private()
            .allow(net("10.0.0.0/8"))
            .deny(net("10.9.0.0/16"))
            .allow(net("10.9.9.9"))
            .deny(net("8.8.0.0/16"));
        let allows = |policy: &AddressPolicy, text| policy.allows(ip(text));
        assert!(allows(&policy, "10.8.0.1"));
        assert!(!allows(&policy, "10.9.0.1"));
        assert!(allows(&policy, "10.9.9.9"));
        assert!(!allows(&policy, "8.8.8.8"));
        assert!(!allows(&policy, "192.168.0.1"));
        // Rules apply to every form of an address.
        assert!(allows(&policy, "::ffff:10.8.0.1"));
        assert!(!allows(&policy, "::ffff:8.8.8.8"));
        assert!(!allows(&policy, "64:ff9b::8.8.8.8"));
        assert!(!allows(&policy, "2002:808:808::1"));
        // An allowed IPv6 network does not allow the addresses embedded in it.
        let nat64 = AddressPolicy::deny_private().allow(net("64:ff9b::/96"));
        assert!(!allows(&nat64, "64:ff9b::127.0.0.1"));
        assert!(allows(
            &AddressPolicy::deny_private().allow(net("::1")),
            "::1"
        ));

        let hooked = policy.hook(Arc::new(|ip| ip.is_ipv4()));
        assert!(allows(&hooked, "9.9.9.9"));
        assert!(!allows(&hooked, "2600::1"));
        assert!(!allows(&hooked, "10.9.0.1"));
        let open = AddressPolicy::allow_all().deny(net("::/0"));
        assert!(allows(&open, "127.0.0.1") && !allows(&open, "2600::1"));
    }

    #[test]
    fn networks_as_text() {
        for (text, shown) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.1", "10.0.0.1/32"),
            ("::/0", "::/0"),
            ("fe80::1", "fe80::1/128"),
        ] {
            assert_eq!(net(text).to_string(), shown);
        }
        for text in "/ 10.0.0.0/ 10.0.0.0/33 ::/129 10.0.0.0/+8 10.0.0/8 a/8"
            .split(' ')
            .chain([""])
        {
            assert_eq!(text.parse::<Network>(), Err(BadNetwork), "{text}");
        }
        assert!(net("0.0.0.0/0").contains(ip("255.0.0.1")));
        assert!(!net("0.0.0.0/0").contains(ip("::1")));
    }
}

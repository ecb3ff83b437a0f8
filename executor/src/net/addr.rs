//! From what users write to socket addresses.

use std::io;
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs as _,
};

use crate::unblock::unblock;
use sealed::Lookup;

/// What can be turned into socket addresses: those that [`std::net::ToSocketAddrs`] is for.
///
/// Addresses and texts that are addresses are known at once; a name with a port, such as
/// `"localhost:80"` or `("localhost", 80)`, is resolved by the system, on the pool for blocking work.
/// There may be several addresses; functions say what they do with them. The trait cannot be
/// implemented elsewhere.
///
/// ```
/// use wakerun::net::UdpSocket;
///
/// wakerun::block_on(async {
///     UdpSocket::bind("127.0.0.1:0").await?;
///     UdpSocket::bind(("127.0.0.1", 0)).await?;
///     UdpSocket::bind(std::net::SocketAddr::from(([127, 0, 0, 1], 0))).await?;
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub trait ToSocketAddrs: sealed::ToLookup {}

impl<T: sealed::ToLookup + ?Sized> ToSocketAddrs for T {}

/// The addresses of a name, as the system's resolver tells them.
///
/// # Errors
/// If the name cannot be resolved, or is not of the form `host:port`.
///
/// ```
/// wakerun::block_on(async {
///     let mut addresses = wakerun::net::lookup_host("127.0.0.1:80").await?;
///     assert!(addresses.all(|address| address.port() == 80));
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub async fn lookup_host<A: ToSocketAddrs>(
    host: A,
) -> io::Result<impl Iterator<Item = SocketAddr> + use<A>> {
    resolve(host.to_lookup()).await
}

mod sealed {
    use std::net::SocketAddr;

    /// What is known without asking the system.
    #[derive(Debug)]
    pub enum Lookup {
        One(SocketAddr),
        Many(Vec<SocketAddr>),
        /// `host:port`.
        Text(String),
        Name(String, u16),
    }

    pub trait ToLookup {
        fn to_lookup(&self) -> Lookup;
    }
}

/// Resolved addresses.
pub(super) enum Addrs {
    One(Option<SocketAddr>),
    Many(std::vec::IntoIter<SocketAddr>),
}

impl Iterator for Addrs {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        match self {
            Self::One(addr) => addr.take(),
            Self::Many(addrs) => addrs.next(),
        }
    }
}

/// Looks up what has to be looked up.
async fn resolve(lookup: Lookup) -> io::Result<Addrs> {
    let addrs = match lookup {
        Lookup::One(addr) => return Ok(Addrs::One(Some(addr))),
        Lookup::Many(addrs) => return Ok(Addrs::Many(addrs.into_iter())),
        Lookup::Text(text) => unblock(move || text.to_socket_addrs()).await?,
        Lookup::Name(host, port) => unblock(move || (host, port).to_socket_addrs()).await?,
    };
    Ok(Addrs::Many(addrs))
}

/// Resolves addresses.
pub(super) async fn addrs(addrs: impl ToSocketAddrs) -> io::Result<Addrs> {
    resolve(addrs.to_lookup()).await
}

/// The first address for which `f` goes well, or else the last error.
pub(super) fn first<T>(
    addrs: Addrs,
    mut f: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = None;
    for addr in addrs {
        match f(addr) {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(no_address))
}

/// The error where there was no address to try.
pub(super) fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "there is no address to try")
}

impl sealed::ToLookup for SocketAddr {
    fn to_lookup(&self) -> Lookup {
        Lookup::One(*self)
    }
}

/// What converts to an address.
macro_rules! known {
    ($($of:ty),*) => {$(
        impl sealed::ToLookup for $of {
            fn to_lookup(&self) -> Lookup {
                Lookup::One(SocketAddr::from(*self))
            }
        }
    )*};
}

known!(
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16)
);

impl sealed::ToLookup for str {
    fn to_lookup(&self) -> Lookup {
        match self.parse() {
            Ok(addr) => Lookup::One(addr),
            Err(_) => Lookup::Text(self.to_owned()),
        }
    }
}

impl sealed::ToLookup for String {
    fn to_lookup(&self) -> Lookup {
        self.as_str().to_lookup()
    }
}

impl sealed::ToLookup for (&str, u16) {
    fn to_lookup(&self) -> Lookup {
        match self.0.parse::<IpAddr>() {
            Ok(ip) => Lookup::One((ip, self.1).into()),
            Err(_) => Lookup::Name(self.0.to_owned(), self.1),
        }
    }
}

impl sealed::ToLookup for (String, u16) {
    fn to_lookup(&self) -> Lookup {
        (self.0.as_str(), self.1).to_lookup()
    }
}

impl sealed::ToLookup for [SocketAddr] {
    fn to_lookup(&self) -> Lookup {
        Lookup::Many(self.to_owned())
    }
}

impl<const N: usize> sealed::ToLookup for [SocketAddr; N] {
    fn to_lookup(&self) -> Lookup {
        self.as_slice().to_lookup()
    }
}

impl sealed::ToLookup for Vec<SocketAddr> {
    fn to_lookup(&self) -> Lookup {
        self.as_slice().to_lookup()
    }
}

impl<T: sealed::ToLookup + ?Sized> sealed::ToLookup for &T {
    fn to_lookup(&self) -> Lookup {
        (**self).to_lookup()
    }
}

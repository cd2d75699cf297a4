private import CLinux

/// A socket address: IPv4, IPv6 or a Unix path.
package struct SocketEndpoint: Sendable, Hashable {
    /// The `sockaddr` bytes in the kernel's layout.
    fileprivate let storage: [UInt8]

    /// From an address literal (IPv6 without brackets) and a port; `nil` for a host name.
    package init?(literal host: String, port: UInt16) {
        var v4 = sockaddr_in()
        if unsafe inet_pton(AF_INET, host, &v4.sin_addr) == 1 {
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_port = port.bigEndian
            storage = unsafe withUnsafeBytes(of: &v4) { unsafe Array($0) }
            return
        }
        var v6 = sockaddr_in6()
        guard unsafe inet_pton(AF_INET6, host, &v6.sin6_addr) == 1 else { return nil }
        v6.sin6_family = sa_family_t(AF_INET6)
        v6.sin6_port = port.bigEndian
        storage = unsafe withUnsafeBytes(of: &v6) { unsafe Array($0) }
    }

    /// From the path of a Unix socket; `nil` when it is empty, has a NUL or exceeds the kernel's limit of 107 bytes.
    package init?(path: String) {
        var address = sockaddr_un()
        let bytes = Array(path.utf8)
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        guard !bytes.isEmpty, bytes.count < MemoryLayout<sockaddr_un>.size - offset, !bytes.contains(0) else {
            return nil
        }
        address.sun_family = sa_family_t(AF_UNIX)
        var raw = unsafe withUnsafeBytes(of: &address) { unsafe Array($0) }
        raw.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
        storage = Array(raw.prefix(offset + bytes.count + 1))
    }

    /// From the bytes of a `sockaddr` in the kernel's layout, such as a resolver's result.
    package init(sockaddr bytes: [UInt8]) { storage = bytes }

    package var isUnix: Bool { family == AF_UNIX }
    package var isIPv6: Bool { family == AF_INET6 }
    fileprivate var family: Int32 {
        storage.count < 2 ? AF_UNSPEC : Int32(UInt16(storage[0]) | UInt16(storage[1]) << 8)
    }

    /// The port; 0 for a Unix socket.
    package var port: UInt16 {
        guard !isUnix, storage.count >= 4 else { return 0 }
        return UInt16(storage[2]) << 8 | UInt16(storage[3])
    }

    /// The same address with another port.
    package func withPort(_ port: UInt16) -> SocketEndpoint {
        guard !isUnix, storage.count >= 4 else { return self }
        var bytes = storage
        (bytes[2], bytes[3]) = (UInt8(port >> 8), UInt8(port & 0xFF))
        return SocketEndpoint(sockaddr: bytes)
    }

    /// The address as 16 bytes, IPv4 mapped into IPv6; zeros for a Unix socket.
    package var addressBytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        if family == AF_INET, storage.count >= 8 {
            (bytes[10], bytes[11]) = (0xFF, 0xFF)
            for index in 0..<4 { bytes[12 &+ index] = storage[4 &+ index] }
        } else if family == AF_INET6, storage.count >= 24 {
            for index in 0..<16 { bytes[index] = storage[8 &+ index] }
        }
        return bytes
    }

    /// The IPv4 address that is mapped into this one, as a listener of both kinds has it; else the address itself.
    var unmapped: SocketEndpoint {
        let octets = addressBytes
        guard isIPv6, octets.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) else { return self }
        let text = octets[12...].map { String($0) }.joined(separator: ".")
        return SocketEndpoint(literal: text, port: port) ?? self
    }

    /// Whether it is `[::]`, which may stand for every IPv4 address, too.
    package var isIPv6Wildcard: Bool { isIPv6 && addressBytes.allSatisfy { $0 == 0 } }

    /// The path of a Unix socket's file.
    package var path: String? {
        guard isUnix else { return nil }
        return String(decoding: storage.dropFirst(2).prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Passes the address to a system call.
    fileprivate func withAddress(_ body: (UnsafeRawPointer?, socklen_t) -> Int32) -> Int32 {
        unsafe storage.withUnsafeBytes { unsafe body($0.baseAddress, socklen_t($0.count)) }
    }
}

extension SocketEndpoint: CustomStringConvertible {
    /// `127.0.0.1:80`, `[::1]:80` or `unix:/path`.
    package var description: String {
        switch family {
        case AF_INET, AF_INET6:
            let text = addressText
            return family == AF_INET6 ? "[\(text)]:\(port)" : "\(text):\(port)"
        case AF_UNIX:
            let path = storage.dropFirst(2).prefix { $0 != 0 }
            return "unix:\(String(decoding: path, as: UTF8.self))"
        default: return "unknown"
        }
    }

    /// 16 bytes (IPv4 mapped) as text, without brackets.
    package static func text(of bytes: [UInt8]) -> String {
        guard bytes.count == 16 else { return "" }
        let isV4 = bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF])
        let family = UInt8(isV4 ? AF_INET : AF_INET6)
        let raw: [UInt8] =
            isV4
            ? [family, 0, 0, 0] + bytes[12...] + [UInt8](repeating: 0, count: 8)
            : [family, 0, 0, 0, 0, 0, 0, 0] + bytes + [0, 0, 0, 0]
        return SocketEndpoint(sockaddr: raw).addressText
    }

    /// ``addressText`` as UTF-8 bytes; faster for IPv4, because every connection needs it once.
    package var addressUTF8: [UInt8] {
        guard family == AF_INET, storage.count >= 8 else { return Array(addressText.utf8) }
        var text: [UInt8] = []
        text.reserveCapacity(15)
        for index in 4..<8 {
            let octet = storage[index]
            if index > 4 { text.append(UInt8(ascii: ".")) }
            if octet > 99 { text.append(octet / 100 &+ 48) }
            if octet > 9 { text.append(octet / 10 % 10 &+ 48) }
            text.append(octet % 10 &+ 48)
        }
        return text
    }

    /// Whether it is a loopback address: 127.0.0.0/8 or ::1.
    package var isLoopback: Bool {
        if family == AF_INET, storage.count >= 8 { return storage[4] == 127 }
        guard family == AF_INET6, storage.count >= 24, storage[23] == 1 else { return false }
        return storage[8..<23].allSatisfy { $0 == 0 }
    }

    /// The address without port or brackets; empty for a Unix socket.
    package var addressText: String {
        var text = [CChar](repeating: 0, count: 64)
        let offset = family == AF_INET ? 4 : 8
        guard family == AF_INET || family == AF_INET6, storage.count > offset else { return "" }
        let family = self.family
        let found = unsafe storage.withUnsafeBytes { raw in
            guard let base = raw.baseAddress else { return false }
            return unsafe inet_ntop(family, base + offset, &text, 64) != nil
        }
        guard found else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// System calls on sockets. The caller owns the descriptors and closes them.
package enum Socket {
    /// `socket` + `bind` + `listen`, non-blocking.
    ///
    /// A stale Unix socket file without a listener is replaced, and one with a
    /// listener if `replacing`. The new file gets its permissions before any client can
    /// connect: until `listen`, connections are refused.
    ///
    /// - Parameter acceptsIPv4: whether `[::]` stands for every IPv4 address, too.
    package static func listen(
        on address: SocketEndpoint, sharesPort: Bool, backlog: Int32, permissions: SocketPermissions? = nil,
        replacing: Bool = false, acceptsIPv4: Bool = false
    ) throws(IOError) -> Int32 {
        if address.isUnix { try removeStale(address, evenIfUsed: replacing) }
        let fd = socket(address.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw IOError("socket") }
        if !address.isUnix {
            set(fd, SOL_SOCKET, SO_REUSEADDR, 1)
            if sharesPort { set(fd, SOL_SOCKET, SO_REUSEPORT, 1) }
            if address.isIPv6 {
                set(fd, Int32(IPPROTO_IPV6), IPV6_V6ONLY, acceptsIPv4 && address.isIPv6Wildcard ? 0 : 1)
            }
            prepareStream(fd, toward: address)
        }
        do throws(IOError) {
            // The file is created with the socket's own mode, minus the umask.
            if address.isUnix, let mode = permissions?.mode { _ = fchmod(fd, mode) }
            guard unsafe address.withAddress({ unsafe martlet_bind(fd, $0, $1) }) == 0 else { throw IOError("bind") }
            do throws(IOError) {
                try permissions?.apply(to: address)
                guard CLinux.listen(fd, backlog) == 0 else { throw IOError("listen") }
            } catch {
                SocketFile(of: address)?.remove()
                throw error
            }
            return fd
        } catch {
            close(fd)
            throw error
        }
    }

    /// Takes over an inherited listening socket and makes it non-blocking and close-on-exec.
    /// - Returns: its address; `nil` for any descriptor that is not a listening stream socket.
    package static func adopt(_ fd: Int32) -> SocketEndpoint? {
        guard [AF_INET, AF_INET6, AF_UNIX].contains(martlet_listening_family(fd)), martlet_make_our_own(fd) == 0 else {
            return nil
        }
        guard let address = localAddress(fd) else { return nil }
        if !address.isUnix { prepareStream(fd, toward: address) }
        return address
    }

    /// Duplicates a descriptor.
    package static func duplicate(_ fd: Int32) throws(IOError) -> Int32 {
        let copy = martlet_duplicate(fd)
        guard copy >= 0 else { throw IOError("fcntl") }
        return copy
    }

    private static func removeStale(_ address: SocketEndpoint, evenIfUsed: Bool) throws(IOError) {
        let (probe, _) = try connect(to: address)
        let connected = pendingError(probe) == 0 && martlet_is_connected(probe) == 1
        close(probe)
        if connected, !evenIfUsed { throw IOError("bind", errno: EADDRINUSE) }
        // A file of another kind refuses connections, too, but must not be removed: `bind` then fails with EADDRINUSE.
        SocketFile(of: address)?.remove()
    }

    /// Starts a non-blocking connect.
    /// - Returns: the descriptor, and whether the connect is in progress. A refused connect leaves its error on the
    ///   descriptor, see ``pendingError(_:)``.
    package static func connect(to address: SocketEndpoint) throws(IOError) -> (fd: Int32, pending: Bool) {
        let fd = socket(address.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw IOError("socket") }
        if !address.isUnix { prepareStream(fd, toward: address) }
        if unsafe address.withAddress({ unsafe martlet_connect(fd, $0, $1) }) == 0 { return (fd, false) }
        let reason = martlet_errno()
        if reason == EINPROGRESS { return (fd, true) }
        if address.isUnix && (reason == ECONNREFUSED || reason == ENOENT) { return (fd, true) }
        close(fd)
        throw IOError("connect", errno: reason)
    }

    /// The result of a connect: 0, or the `errno` with which it failed.
    package static func pendingError(_ fd: Int32) -> Int32 {
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 else { return martlet_errno() }
        return error
    }

    /// Accepts one connection.
    /// - Returns: `nil` when there is none, or the peer has already disconnected.
    package static func accept(_ listener: Int32) -> (fd: Int32, peer: SocketEndpoint)? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let fd = unsafe martlet_accept(listener, &address, &length)
        guard fd >= 0 else { return nil }
        let peer = unsafe withUnsafeBytes(of: &address) { raw in
            SocketEndpoint(sockaddr: unsafe Array(raw.prefix(Int(length))))
        }
        return (fd, peer.unmapped)
    }

    /// Sends small writes immediately (`TCP_NODELAY`), and disables pacing on the loopback.
    ///
    /// Accepted connections inherit the options of their listener.
    private static func prepareStream(_ fd: Int32, toward address: SocketEndpoint) {
        set(fd, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        if address.isLoopback { _ = martlet_do_not_pace(fd) }
    }

    /// Accepts connections only when their first bytes have arrived, or after a second (`TCP_DEFER_ACCEPT`).
    ///
    /// Has no effect on a Unix socket.
    package static func setDeferAccept(_ listener: Int32, _ isOn: Bool) {
        set(listener, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT, isOn ? 1 : 0)
    }

    /// Connections that wait to be accepted from a TCP listener (`tcp(7)`, `TCP_INFO`); 0 for any other socket.
    package static func backlog(of listener: Int32) -> Int {
        var info = tcp_info()
        var size = socklen_t(MemoryLayout<tcp_info>.size)
        let result = unsafe getsockopt(listener, Int32(IPPROTO_TCP), TCP_INFO, &info, &size)
        // For a listener the kernel reports the length of its queue here.
        return result == 0 ? Int(info.tcpi_unacked) : 0
    }

    /// Makes the kernel drop the SYN of every new connection to a listener, for good; what is established by then, or in
    /// its handshake, can still be accepted.
    package static func dropHandshakes(_ listener: Int32) { _ = martlet_drop_syn(listener) }

    /// Whether there are unread bytes.
    package static func hasUnread(_ fd: Int32) -> Bool {
        var byte: UInt8 = 0
        return unsafe martlet_receive(fd, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Makes `close` send a RST instead of a FIN.
    package static func resetOnClose(_ fd: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// The address a socket is bound to, with its actual port.
    package static func localAddress(_ fd: Int32) -> SocketEndpoint? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard unsafe martlet_local_name(fd, &address, &length) == 0 else { return nil }
        let local = unsafe withUnsafeBytes(of: &address) {
            SocketEndpoint(sockaddr: unsafe Array($0.prefix(Int(length))))
        }
        return local.unmapped
    }

    /// Whether a socket accepts IPv6 alone; false for one of another kind.
    package static func isIPv6Only(_ fd: Int32) -> Bool {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(fd, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &value, &length) == 0 && value != 0
    }

    private static func set(_ fd: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        _ = unsafe setsockopt(fd, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}

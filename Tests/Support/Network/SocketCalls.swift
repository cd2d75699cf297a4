import Foundation
internal import Glibc

func openSocket(for endpoint: Endpoint) throws -> Int32 {
    let family: Int32
    switch endpoint {
    case .tcp(let host, _): family = host.contains(":") ? AF_INET6 : AF_INET
    case .unix: family = AF_UNIX
    }
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw TestFailure("socket: \(errorText())") }
    return descriptor
}

/// Lends the endpoint in the kernel's shape.
func withSocketAddress<Result>(
    _ endpoint: Endpoint, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
) throws -> Result {
    switch endpoint {
    case .tcp(let host, let port) where host.contains(":"):
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        guard unsafe inet_pton(AF_INET6, host, &address.sin6_addr) == 1 else { throw TestFailure("address \(host)") }
        return try unsafe lend(&address, body)
    case .tcp(let host, let port):
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard unsafe inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw TestFailure("address \(host)") }
        return try unsafe lend(&address, body)
    case .unix(let path):
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < room else { throw TestFailure("path too long: \(path)") }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        return try unsafe lend(&address, body)
    }
}

private func lend<Address, Result>(
    _ address: inout Address, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
) rethrows -> Result {
    let size = socklen_t(MemoryLayout<Address>.size)
    return try unsafe withUnsafePointer(to: &address) { pointer in
        try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try unsafe body($0, size) }
    }
}

/// The port a socket is bound to; 0 for a unix socket.
func boundPort(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_in6()
    var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(descriptor, $0, &size) }
    }
    // The port stands at the same place in both families' addresses.
    guard result == 0, [AF_INET, AF_INET6].contains(Int32(address.sin6_family)) else { return 0 }
    return UInt16(bigEndian: address.sin6_port)
}

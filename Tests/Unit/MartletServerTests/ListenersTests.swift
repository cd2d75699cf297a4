import Glibc
import MartletConfig
import MartletCore
import MartletIO
import MartletTesting
import Testing

@testable import MartletProxy
@testable import MartletServer

private let here = SourceLocation(file: "config.yaml", line: 4, column: 16)

private func listener(_ address: SocketAddress) -> ListenerConfiguration {
    ListenerConfiguration(address: Located(address, at: here), reusePort: false)
}

private let anyPort = SocketAddress.ip(host: "127.0.0.1", port: 0)

/// Listening sockets of one port, as another process would have them.
private func sockets(_ count: Int) throws -> [Int32] {
    let any = try #require(SocketEndpoint(literal: "127.0.0.1", port: 0))
    var list = [try Socket.listen(on: any, sharesPort: true, backlog: 1)]
    let actual = try #require(Socket.localAddress(list[0]))
    while list.count < count { list.append(try Socket.listen(on: actual, sharesPort: true, backlog: 1)) }
    return list
}

@Suite struct `The listeners` {
    /// The sockets of every loop.
    private func open(
        _ listeners: inout Listeners, _ configurations: [ListenerConfiguration], loops: Int,
        _ inherited: InheritedSockets = InheritedSockets()
    ) throws -> [[LoopSocket]] {
        var inherited = inherited
        let opened = try listeners.open(
            configurations, loops: loops, role: .gateway, inherited: &inherited)
        inherited.closeUnused()
        return opened.map { loop in loop.map { LoopSocket(id: $0.id, fd: $0.fd, isShared: $0.isShared) } }
    }

    private struct LoopSocket {
        let id: Int32
        let fd: Int32
        let isShared: Bool
    }

    private func close(_ opened: [[LoopSocket]]) {
        for socket in opened.joined() where socket.fd >= 0 { _ = Glibc.close(socket.fd) }
    }

    @Test func `for every IPv6 address have IPv4 too, where no other listener has its port`() throws {
        var listeners = Listeners()
        let any = listener(.ip(host: "::", port: 0))
        var only = any
        only.isIPv6Only = true
        let opened = try open(&listeners, [any, only], loops: 2)
        defer { close(opened) }
        for loop in opened { #expect(loop.map { Socket.isIPv6Only($0.fd) } == [false, true]) }
        let port = listeners.addresses[0].port
        #expect(throws: StartError.self) {
            var other = Listeners()
            _ = try open(&other, [listener(.ip(host: "127.0.0.1", port: port))], loops: 1)
        }
        let (both, four) = (listener(.ip(host: "::", port: 443)), listener(.ip(host: "0.0.0.0", port: 443)))
        #expect(both.acceptsIPv4(beside: [both]) && !both.acceptsIPv4(beside: [both, four]))
        #expect(both.acceptsIPv4(beside: [both, listener(.ip(host: "0.0.0.0", port: 80)), listener(anyPort)]))
    }

    @Test(arguments: [(1, 3), (2, 3), (3, 3), (4, 3), (7, 3), (5, 1)])
    func `spread a predecessor's sockets over the loops that there are`(_ handed: Int, _ loops: Int) throws {
        let descriptors = try sockets(handed)
        let port = try #require(Socket.localAddress(descriptors[0])).port
        var listeners = Listeners()
        let group = InheritedSockets.Group(side: .public, address: "127.0.0.1:0", descriptors: descriptors)
        let opened = try open(&listeners, [listener(anyPort)], loops: loops, InheritedSockets(groups: [group]))
        defer { close(opened) }
        #expect(opened.count == loops && opened.allSatisfy { !$0.isEmpty })
        #expect(opened.joined().count == max(handed, loops))
        #expect(Set(opened.joined().map(\.fd)).isSuperset(of: descriptors))
        for socket in opened.joined() { #expect(Socket.localAddress(socket.fd)?.port == port) }
        // A loop finds a listener by its number.
        for loop in opened { #expect(Set(loop.map(\.id)).count == loop.count) }
        #expect(Set(listeners.socketsForSuccessor(.public).flatMap(\.descriptors)) == Set(opened.joined().map(\.fd)))
        // A reload keeps every one of them.
        let kept = try open(&listeners, [listener(anyPort)], loops: loops)
        #expect(kept.map { $0.map(\.id) } == opened.map { $0.map(\.id) })
        #expect(kept.joined().allSatisfy { $0.fd == -1 })
    }

    /// What a descriptor refers to; `nil` if it is closed.
    private func inode(of descriptor: Int32) -> UInt64? {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    @Test func `close a predecessor's sockets that the configuration does not use`() throws {
        let descriptors = try sockets(2)
        let before = descriptors.map { inode(of: $0) }
        #expect(before.allSatisfy { $0 != nil })
        let group = InheritedSockets.Group(side: .admin, address: "127.0.0.1:0", descriptors: descriptors)
        var listeners = Listeners()
        let opened = try open(&listeners, [listener(anyPort)], loops: 1, InheritedSockets(groups: [group]))
        defer { close(opened) }
        // Another test may have opened something under the same number.
        for (descriptor, old) in zip(descriptors, before) { #expect(inode(of: descriptor) != old) }
    }

    @Test func `share a socket that the process was started with`() throws {
        let descriptor = try sockets(1)[0]
        defer { _ = Glibc.close(descriptor) }
        var listeners = Listeners()
        let inherited = InheritedSockets(groups: [], activated: [descriptor])
        let opened = try open(&listeners, [listener(.descriptor(descriptor))], loops: 2, inherited)
        defer { close(opened) }
        #expect(opened.joined().count == 2 && opened.joined().allSatisfy { $0.isShared && $0.fd != descriptor })
        #expect(listeners.addresses == [try #require(Socket.localAddress(descriptor))])
        #expect(listeners.socketsForSuccessor(.public).isEmpty)
    }

    @Test func `report an address that cannot be bound with its position`() throws {
        let taken = try sockets(1)[0]
        defer { _ = Glibc.close(taken) }
        let port = try #require(Socket.localAddress(taken)).port
        let bad: [(ListenerConfiguration, String)] = [
            (listener(.descriptor(900)), "server.bad_descriptor"),
            (listener(.ip(host: "127.0.0.1", port: port)), "server.address_in_use"),
            (listener(.unix(path: "/nowhere/at/all.sock")), "server.cannot_listen"),
        ]
        for (configuration, code) in bad {
            var listeners = Listeners()
            let error = #expect(throws: StartError.self) {
                try listeners.open([listener(anyPort), configuration], loops: 1, role: .gateway)
            }
            #expect(error?.code.rawValue == code)
            #expect(error?.message.hasPrefix("config.yaml:4:16: ") == true, "\(String(describing: error))")
            #expect(listeners.addresses.isEmpty)
        }
    }

    @Test func `of Unix sockets have their permissions, at a reload too`() throws {
        let folder = try TemporaryFolder()
        var configuration = listener(.unix(path: folder.file("m.sock")))
        var listeners = Listeners()
        var opened: [[LoopSocket]] = []
        defer { close(opened) }
        for mode: UInt16 in [0o600, 0o666, 0o770] {
            var permissions = SocketFilePermissions()
            permissions.mode = mode
            (permissions.owner, permissions.group) = ("\(getuid())", "\(getgid())")
            configuration.socketFile = permissions
            opened += try open(&listeners, [configuration], loops: 1)
            var status = stat()
            #expect(unsafe lstat(folder.file("m.sock"), &status) == 0)
            #expect(status.st_mode & 0o7777 == UInt32(mode) && status.st_mode & UInt32(S_IFMT) == UInt32(S_IFSOCK))
        }
        configuration.socketFile?.owner = "nobody-of-this-name"
        let error = #expect(throws: StartError.self) { try open(&listeners, [configuration], loops: 1) }
        #expect(error?.code == "server.unknown_user" && error?.exit == .configuration)
        listeners.removeFiles()
        #expect(unsafe access(folder.file("m.sock"), F_OK) != 0)
    }
}

@Suite struct `Inherited sockets of one address` {
    @Test(arguments: [
        ("public 127.0.0.1:0=8,9", "127.0.0.1:0", [8, 9]), ("admin unix:/a b=c.sock=10", "unix:/a b=c.sock", [10]),
        ("public [::1]:8443=2147483647", "[::1]:8443", [2_147_483_647]),
    ])
    func `are read as they are written`(_ line: String, _ address: String, _ descriptors: [Int32]) throws {
        let group = try #require(InheritedSockets.Group(line: line[...]))
        #expect(group.address == address && group.descriptors == descriptors && group.line == line)
    }

    @Test(arguments: [
        "", "public", "public 127.0.0.1:0", "public 127.0.0.1:0=", "public 127.0.0.1:0=2", "public 127.0.0.1:0=8,",
        "public 127.0.0.1:0=-8", "other 127.0.0.1:0=8", "=8", "public=8", "public 127.0.0.1:0=2147483648",
    ])
    func `are not read from a malformed line`(_ line: String) {
        #expect(InheritedSockets.Group(line: line[...]) == nil)
    }
}

private import CLinux
package import MartletConfig
internal import MartletCore
package import MartletIO

/// A listener that is bound to its address, with its sockets.
struct BoundListener: Sendable {
    /// A socket that one loop accepts from.
    struct LoopSocket: Sendable {
        let id: Int32
        let fd: Int32
    }

    private static let backlog: Int32 = 4096

    let id: Int32
    let configured: SocketAddress
    /// With the port that the system chose.
    let actual: SocketEndpoint
    /// The sockets of every loop: one each, unless a predecessor had more loops.
    let loopSockets: [[LoopSocket]]
    /// Every loop has the same socket, so a connection must wake only one of them.
    let isShared: Bool
    /// The file of a Unix socket that this process or its predecessor created.
    let file: SocketFile?
    private var permissions: SocketFilePermissions?

    private init(
        _ configuration: ListenerConfiguration, actual: SocketEndpoint, descriptors: [Int32], loops: Int,
        isShared: Bool,
        nextID: inout Int32
    ) {
        configured = configuration.address.value
        self.actual = actual
        self.isShared = isShared
        nextID += 1
        id = nextID
        var sockets = [[LoopSocket]](repeating: [], count: max(loops, 1))
        for (index, descriptor) in descriptors.enumerated() {
            // Listener ids are unique within a loop.
            if index >= sockets.count { nextID += 1 }
            sockets[index % sockets.count].append(LoopSocket(id: index < sockets.count ? id : nextID, fd: descriptor))
        }
        loopSockets = sockets
        // The file of a socket that was passed as a descriptor belongs to whoever created it.
        if case .unix = configuration.address.value { file = SocketFile(of: actual) } else { file = nil }
    }

    // MARK: Opening

    /// Binds new sockets.
    ///
    /// - Parameter acceptsIPv4: whether `[::]` accepts IPv4, too.
    static func opened(
        _ configuration: ListenerConfiguration, acceptsIPv4: Bool, loops: Int, nextID: inout Int32
    ) throws(StartError) -> BoundListener {
        let address = try endpoint(configuration.address)
        let permissions = try SocketPermissions(configuration)
        var descriptors: [Int32] = []
        do throws(IOError) {
            if !address.isUnix, !configuration.reusePort, address.port != 0 {
                // The loops' sockets share the port; this one does not, so it fails if another process listens there.
                CLinux.close(
                    try Socket.listen(on: address, sharesPort: false, backlog: 1, acceptsIPv4: acceptsIPv4))
            }
            let first = try Socket.listen(
                on: address, sharesPort: true, backlog: backlog, permissions: permissions,
                replacing: configuration.reusePort, acceptsIPv4: acceptsIPv4)
            descriptors.append(first)
            let actual = address.isUnix ? address : Socket.localAddress(first) ?? address
            try add(to: &descriptors, until: loops, actual)
            var listener = BoundListener(
                configuration, actual: actual, descriptors: descriptors, loops: loops, isShared: actual.isUnix,
                nextID: &nextID)
            listener.permissions = configuration.socketFile
            return listener
        } catch {
            for descriptor in descriptors { CLinux.close(descriptor) }
            let isForBoth = acceptsIPv4 && address.isIPv6Wildcard && error.errno == EADDRINUSE
            throw startError(
                error, configuration.address, address,
                hint: isForBoth ? "; [::] is for IPv4, too, unless the listener has ipv6_only: true" : "")
        }
    }

    /// Takes over the sockets of a predecessor.
    static func inherited(
        _ handed: [Int32], _ configuration: ListenerConfiguration, loops: Int, nextID: inout Int32
    ) throws(StartError) -> BoundListener {
        let fallback = try endpoint(configuration.address)
        var descriptors = handed
        let actual = handed.first.flatMap { Socket.localAddress($0) } ?? fallback
        do throws(IOError) { try add(to: &descriptors, until: loops, actual) } catch {
            for descriptor in descriptors { CLinux.close(descriptor) }
            throw startError(error, configuration.address, actual)
        }
        return BoundListener(
            configuration, actual: actual, descriptors: descriptors, loops: loops, isShared: actual.isUnix,
            nextID: &nextID)
    }

    /// Accepts from a socket that the process was started with.
    ///
    /// The original descriptor stays open beside the loops' duplicates, for a reload that uses it again and for a
    /// successor.
    static func activated(
        _ number: Int32, _ configuration: ListenerConfiguration, loops: Int, _ inherited: InheritedSockets,
        nextID: inout Int32
    ) throws(StartError) -> BoundListener {
        guard inherited.activated.contains(number), let actual = Socket.localAddress(number) else {
            let hint = inherited.announced.map { "; the service manager passed \($0), starting at fd:3" } ?? ""
            throw StartError(
                code: "server.bad_descriptor",
                message:
                    "\(prefix(configuration.address))fd:\(number) is not a listening socket passed at startup"
                    + hint,
                exit: .configuration)
        }
        var descriptors: [Int32] = []
        do throws(IOError) {
            for _ in 0..<max(loops, 1) { descriptors.append(try Socket.duplicate(number)) }
        } catch {
            for descriptor in descriptors { CLinux.close(descriptor) }
            throw startError(error, configuration.address, actual)
        }
        return BoundListener(
            configuration, actual: actual, descriptors: descriptors, loops: loops, isShared: true, nextID: &nextID)
    }

    /// One socket for every loop: separate sockets that share a port, or duplicates of one Unix socket.
    private static func add(
        to descriptors: inout [Int32], until loops: Int, _ actual: SocketEndpoint
    ) throws(IOError) {
        guard let first = descriptors.first else { return }
        let acceptsIPv4 = !Socket.isIPv6Only(first)
        for _ in descriptors.count..<max(loops, descriptors.count) {
            descriptors.append(
                actual.isUnix
                    ? try Socket.duplicate(first)
                    : try Socket.listen(on: actual, sharesPort: true, backlog: backlog, acceptsIPv4: acceptsIPv4))
        }
    }

    // MARK: Changes

    /// Applies the owner, group and mode of a new configuration to the file of a Unix socket.
    mutating func permit(_ configuration: ListenerConfiguration) throws(StartError) {
        guard file != nil, permissions != configuration.socketFile else { return }
        let wanted = try SocketPermissions(configuration)
        do { try wanted?.apply(to: actual) } catch {
            throw BoundListener.startError(error, configuration.address, actual)
        }
        permissions = configuration.socketFile
    }

    func close() {
        for socket in loopSockets.joined() { CLinux.close(socket.fd) }
    }

    /// The sockets for a successor; `nil` for a socket that the process was started with, which is passed on
    /// separately.
    func group(_ side: InheritedSockets.Group.Side) -> InheritedSockets.Group? {
        if case .descriptor = configured { return nil }
        let all = loopSockets.joined().map(\.fd)
        return InheritedSockets.Group(
            side: side, address: configured.configurationText, descriptors: isShared ? Array(all.prefix(1)) : all)
    }

    // MARK: Errors

    private static func startError(
        _ error: IOError, _ configured: Located<SocketAddress>, _ address: SocketEndpoint, hint: String = ""
    ) -> StartError {
        let code: ErrorCode = error.errno == EADDRINUSE ? "server.address_in_use" : "server.cannot_listen"
        return StartError(
            code: code, message: "\(prefix(configured))cannot listen on \(address): \(error)\(hint)",
            exit: .unavailable)
    }

    /// `file:line:column: ` of an address that comes from a file.
    fileprivate static func prefix(_ address: Located<SocketAddress>) -> String {
        address.location.file.hasPrefix("--") ? "" : "\(address.location): "
    }

    private static func endpoint(_ address: Located<SocketAddress>) throws(StartError) -> SocketEndpoint {
        guard let endpoint = SocketEndpoint(address.value) else {
            throw StartError(
                code: "server.bad_address",
                message: "\(prefix(address))'\(address.value.configurationText)' is not a valid address",
                exit: .configuration)
        }
        return endpoint
    }
}

extension SocketEndpoint {
    /// The endpoint of a configured address; `nil` for a descriptor or an invalid address.
    package init?(_ address: SocketAddress) {
        switch address {
        case .ip(let host, let port): self.init(literal: host, port: port)
        case .unix(let path): self.init(path: path)
        case .descriptor: return nil
        }
    }
}

extension ListenerConfiguration {
    /// Reports an owner or a group that does not exist on this system.
    func checkOwners(into diagnostics: inout Diagnostics) {
        if let name = socketFile?.owner, SystemAccount.user(name) == nil {
            diagnostics.error("server.unknown_user", at: address.location, "owner: unknown user '\(name)'")
        }
        if let name = socketFile?.group, SystemAccount.group(name) == nil {
            diagnostics.error("server.unknown_group", at: address.location, "group: unknown group '\(name)'")
        }
    }
}

extension SocketPermissions {
    /// Resolves the names of a configuration; `nil` if it has none.
    fileprivate init?(_ configuration: ListenerConfiguration) throws(StartError) {
        guard let names = configuration.socketFile else { return nil }
        self.init()
        mode = names.mode.map { UInt32($0) }
        if let name = names.owner { owner = try Self.known(SystemAccount.user(name), "user", name, configuration) }
        if let name = names.group { group = try Self.known(SystemAccount.group(name), "group", name, configuration) }
    }

    private static func known(
        _ number: UInt32?, _ kind: String, _ name: String, _ configuration: ListenerConfiguration
    ) throws(StartError) -> UInt32 {
        guard let number else {
            throw StartError(
                code: ErrorCode(rawValue: "server.unknown_\(kind)"),
                message: "\(BoundListener.prefix(configuration.address))unknown \(kind) '\(name)'",
                exit: .configuration)
        }
        return number
    }
}

private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletIO

/// One address that is listened on.
struct ListenerPlace: Sendable {
    /// A socket in a loop.
    struct Lane: Sendable {
        let id: Int32
        let fd: Int32
    }

    private static let backlog: Int32 = 4096

    let id: Int32
    let configured: SocketAddress
    /// With the port that the system chose.
    let actual: SocketEndpoint
    /// For every loop the sockets that it accepts from: one, unless a predecessor had more loops.
    let lanes: [[Lane]]
    /// Every loop has the same socket, so that a client wakes one of them only.
    let isShared: Bool
    /// What stands in the file system for a Unix socket that is ours.
    let file: SocketFile?
    /// What its file was given.
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
        var lanes = [[Lane]](repeating: [], count: max(loops, 1))
        for (index, descriptor) in descriptors.enumerated() {
            // A loop tells its listeners apart by their numbers.
            if index >= lanes.count { nextID += 1 }
            lanes[index % lanes.count].append(Lane(id: index < lanes.count ? id : nextID, fd: descriptor))
        }
        self.lanes = lanes
        // The file of a socket that somebody else opened is theirs.
        if case .unix = configuration.address.value { file = SocketFile(of: actual) } else { file = nil }
    }

    // MARK: Opening

    /// Opens sockets of our own.
    static func opened(
        _ configuration: ListenerConfiguration, loops: Int, nextID: inout Int32
    ) throws(StartError) -> ListenerPlace {
        let address = try endpoint(configuration.address)
        let permissions = try SocketPermissions(configuration)
        var descriptors: [Int32] = []
        do throws(IOError) {
            if !address.isUnix, !configuration.reusePort, address.port != 0 {
                // Every loop's socket shares the port; this one does not, so it fails where another process listens.
                CLinux.close(try Socket.listen(on: address, sharesPort: false, backlog: 1))
            }
            let first = try Socket.listen(on: address, sharesPort: true, backlog: backlog, permissions: permissions)
            descriptors.append(first)
            let actual = address.isUnix ? address : Socket.localAddress(first) ?? address
            try add(to: &descriptors, until: loops, actual)
            var place = ListenerPlace(
                configuration, actual: actual, descriptors: descriptors, loops: loops, isShared: actual.isUnix,
                nextID: &nextID)
            place.permissions = configuration.socketFile
            return place
        } catch {
            for descriptor in descriptors { CLinux.close(descriptor) }
            throw failure(error, configuration.address, address)
        }
    }

    /// Goes on with the sockets of a predecessor.
    static func inherited(
        _ handed: [Int32], _ configuration: ListenerConfiguration, loops: Int, nextID: inout Int32
    ) throws(StartError) -> ListenerPlace {
        let fallback = try endpoint(configuration.address)
        var descriptors = handed
        let actual = handed.first.flatMap { Socket.localAddress($0) } ?? fallback
        do throws(IOError) { try add(to: &descriptors, until: loops, actual) } catch {
            for descriptor in descriptors { CLinux.close(descriptor) }
            throw failure(error, configuration.address, actual)
        }
        return ListenerPlace(
            configuration, actual: actual, descriptors: descriptors, loops: loops, isShared: actual.isUnix,
            nextID: &nextID)
    }

    /// Accepts from a socket that the process was started with; it stays open beside the loops' own descriptors, for a
    /// reload that brings it back and for a successor.
    static func activated(
        _ number: Int32, _ configuration: ListenerConfiguration, loops: Int, _ inheritance: Inheritance,
        nextID: inout Int32
    ) throws(StartError) -> ListenerPlace {
        guard inheritance.activated.contains(number), let actual = Socket.localAddress(number) else {
            let hint = inheritance.announced.map { "; the service manager passed \($0) from fd:3 on" } ?? ""
            throw StartError(
                code: "server.bad_descriptor",
                message:
                    "\(prefix(configuration.address))the process was started without a listening socket fd:\(number)"
                    + hint,
                exit: .configuration)
        }
        var descriptors: [Int32] = []
        do throws(IOError) {
            for _ in 0..<max(loops, 1) { descriptors.append(try Socket.duplicate(number)) }
        } catch {
            for descriptor in descriptors { CLinux.close(descriptor) }
            throw failure(error, configuration.address, actual)
        }
        return ListenerPlace(
            configuration, actual: actual, descriptors: descriptors, loops: loops, isShared: true, nextID: &nextID)
    }

    /// One socket for every loop: more of them on a port, the same one for a path.
    private static func add(
        to descriptors: inout [Int32], until loops: Int, _ actual: SocketEndpoint
    ) throws(IOError) {
        guard let first = descriptors.first else { return }
        for _ in descriptors.count..<max(loops, descriptors.count) {
            descriptors.append(
                actual.isUnix
                    ? try Socket.duplicate(first) : try Socket.listen(on: actual, sharesPort: true, backlog: backlog))
        }
    }

    // MARK: Life

    /// Gives a Unix socket's file the owner, group and mode that the configuration has now.
    mutating func permit(_ configuration: ListenerConfiguration) throws(StartError) {
        guard file != nil, permissions != configuration.socketFile else { return }
        let wanted = try SocketPermissions(configuration)
        do { try wanted?.apply(to: actual) } catch { throw ListenerPlace.failure(error, configuration.address, actual) }
        permissions = configuration.socketFile
    }

    /// Closes sockets that no loop has got.
    func close() {
        for lane in lanes.joined() { CLinux.close(lane.fd) }
    }

    /// What a successor gets of it; sockets that the process was started with are handed on by themselves.
    func group(_ side: Inheritance.Group.Side) -> Inheritance.Group? {
        if case .descriptor = configured { return nil }
        let all = lanes.joined().map(\.fd)
        return Inheritance.Group(
            side: side, address: configured.configurationText, descriptors: isShared ? Array(all.prefix(1)) : all)
    }

    // MARK: Failures

    private static func failure(
        _ error: IOError, _ place: Located<SocketAddress>, _ address: SocketEndpoint
    )
        -> StartError
    {
        let code: ErrorCode = error.errno == EADDRINUSE ? "server.address_in_use" : "server.cannot_listen"
        return StartError(
            code: code, message: "\(prefix(place))cannot listen on \(address): \(error)", exit: .unavailable)
    }

    /// Where the address stands, if it stands in a file.
    fileprivate static func prefix(_ place: Located<SocketAddress>) -> String {
        place.location.file.hasPrefix("--") ? "" : "\(place.location): "
    }

    private static func endpoint(_ address: Located<SocketAddress>) throws(StartError) -> SocketEndpoint {
        guard let endpoint = endpoint(address.value) else {
            throw StartError(
                code: "server.bad_address",
                message: "\(prefix(address))'\(address.value.configurationText)' is not an address",
                exit: .configuration)
        }
        return endpoint
    }

    /// The socket address of a configured one; `nil` for a descriptor, which has its own.
    static func endpoint(_ address: SocketAddress) -> SocketEndpoint? {
        switch address {
        case .ip(let host, let port): SocketEndpoint(literal: host, port: port)
        case .unix(let path): SocketEndpoint(path: path)
        case .descriptor: nil
        }
    }
}

extension ListenerConfiguration {
    /// Records an owner or a group that the system does not have.
    func checkOwners(into diagnostics: inout Diagnostics) {
        if let name = socketFile?.owner, SystemAccount.user(name) == nil {
            diagnostics.error("server.unknown_user", at: address.location, "owner: the system has no user '\(name)'")
        }
        if let name = socketFile?.group, SystemAccount.group(name) == nil {
            diagnostics.error("server.unknown_group", at: address.location, "group: the system has no group '\(name)'")
        }
    }
}

extension SocketPermissions {
    /// The numbers of a configuration's names; `nil` where it has none.
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
                message: "\(ListenerPlace.prefix(configuration.address))the system has no \(kind) '\(name)'",
                exit: .configuration)
        }
        return number
    }
}

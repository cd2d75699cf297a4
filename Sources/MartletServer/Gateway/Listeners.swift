private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProxy
internal import MartletTLS

/// The addresses the process listens on, and one socket of each for every loop.
struct Listeners: Sendable {
    /// One address.
    private struct Place: Sendable {
        let id: Int32
        let configured: SocketAddress
        /// With the port that the system chose.
        let actual: SocketEndpoint
        /// What stands in the file system for a Unix socket.
        let file: SocketFile?
    }

    private static let backlog: Int32 = 4096

    private var places: [Place] = []
    private var nextID: Int32 = 1

    /// The addresses in use, ports filled in.
    var addresses: [SocketEndpoint] { places.map(\.actual) }

    /// Opens what is new and keeps what stays.
    /// - Parameters:
    ///   - configurations: the listeners there shall be.
    ///   - loops: how many loops accept.
    ///   - role: what is done with requests.
    ///   - security: for each of the configurations its TLS; nothing at all is clear text.
    /// - Returns: for every loop its sockets; −1 stands for one that the loop has already.
    /// - Throws: `server.address_in_use` and the like; then nothing has changed.
    mutating func open(
        _ configurations: [ListenerConfiguration], loops: Int, role: ListenerSocket.Role,
        security: [TLSServerContext?] = []
    ) throws(StartError) -> [[ListenerSocket]] {
        var sockets = [[ListenerSocket]](repeating: [], count: loops)
        var next: [Place] = []
        for (index, configuration) in configurations.enumerated() {
            let tls = security.indices.contains(index) ? security[index] : nil
            if let kept = places.first(where: { place in
                place.configured == configuration.address.value && !next.contains { $0.id == place.id }
            }) {
                next.append(kept)
                for loop in 0..<loops {
                    sockets[loop].append(
                        ListenerSocket(
                            id: kept.id, fd: -1, isUnix: kept.actual.isUnix, role: role,
                            configuration: configuration, tls: tls))
                }
                continue
            }
            do {
                let (place, descriptors) = try open(configuration, loops: loops)
                next.append(place)
                for loop in 0..<loops {
                    sockets[loop].append(
                        ListenerSocket(
                            id: place.id, fd: descriptors[loop], isUnix: place.actual.isUnix, role: role,
                            configuration: configuration, tls: tls))
                }
            } catch {
                for socket in sockets.joined() where socket.fd >= 0 { close(socket.fd) }
                Listeners.removeFiles(of: next, butOf: places)
                throw error
            }
        }
        Listeners.removeFiles(of: places, butOf: next)
        places = next
        return sockets
    }

    /// Takes the files of Unix sockets away; nobody finds the way to them any more.
    func removeFiles() { Listeners.removeFiles(of: places, butOf: []) }

    private static func removeFiles(of places: [Place], butOf kept: [Place]) {
        for place in places where !kept.contains(where: { $0.id == place.id }) { place.file?.remove() }
    }

    private mutating func open(
        _ configuration: ListenerConfiguration, loops: Int
    ) throws(StartError) -> (Place, [Int32]) {
        let address = try Listeners.endpoint(configuration.address.value)
        var descriptors: [Int32] = []
        do {
            if !address.isUnix, !configuration.reusePort, address.port != 0 {
                // Every loop's socket shares the port; this one does not, so it fails where another process listens.
                close(try Socket.listen(on: address, sharesPort: false, backlog: 1))
            }
            let first = try Socket.listen(on: address, sharesPort: true, backlog: Listeners.backlog)
            descriptors.append(first)
            let actual = address.isUnix ? address : Socket.localAddress(first) ?? address
            for _ in 1..<max(loops, 1) {
                descriptors.append(
                    address.isUnix
                        ? dup(first) : try Socket.listen(on: actual, sharesPort: true, backlog: Listeners.backlog))
            }
            nextID += 1
            let place = Place(
                id: nextID, configured: configuration.address.value, actual: actual, file: SocketFile(of: actual))
            return (place, descriptors)
        } catch {
            for descriptor in descriptors { close(descriptor) }
            let code: ErrorCode = error.errno == EADDRINUSE ? "server.address_in_use" : "server.cannot_listen"
            throw StartError(code: code, message: "cannot listen on \(address): \(error)", exit: .unavailable)
        }
    }

    /// The socket address of a configured one.
    static func endpoint(_ address: SocketAddress) throws(StartError) -> SocketEndpoint {
        let endpoint: SocketEndpoint? =
            switch address {
            case .ip(let host, let port): SocketEndpoint(literal: host, port: port)
            case .unix(let path): SocketEndpoint(path: path)
            case .descriptor: nil
            }
        guard let endpoint else {
            throw StartError(
                code: "server.bad_address", message: "'\(address)' is not an address", exit: .configuration)
        }
        return endpoint
    }
}

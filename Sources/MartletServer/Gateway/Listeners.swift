internal import MartletConfig
internal import MartletIO
internal import MartletProxy
internal import MartletTLS

/// The addresses the process listens on, and the sockets of each that every loop accepts from.
struct Listeners: Sendable {
    private var places: [ListenerPlace] = []
    private var nextID: Int32 = 1

    /// The addresses in use, ports filled in.
    var addresses: [SocketEndpoint] { places.map(\.actual) }

    /// Opens what is new and keeps what stays, whatever else the configuration says of it now.
    /// - Parameters:
    ///   - configurations: the listeners there shall be.
    ///   - loops: how many loops accept.
    ///   - side: what inherited sockets are looked for under.
    ///   - role: what is done with requests.
    ///   - health: answers at the paths where listeners tell whether the gateway is ready.
    ///   - inheritance: what the process was started with; sockets of these addresses are taken out of it.
    ///   - security: for each of the configurations its TLS; nothing at all is clear text.
    /// - Returns: for every loop its sockets; −1 stands for one that the loop has already.
    /// - Throws: `server.address_in_use` and the like; then nothing has changed.
    mutating func open(
        _ configurations: [ListenerConfiguration], loops: Int, side: Inheritance.Group.Side = .public,
        role: ListenerSocket.Role, health: LocalHandler? = nil, inheritance: inout Inheritance,
        security: [TLSServerContext?] = []
    ) throws(StartError) -> [[ListenerSocket]] {
        var next: [ListenerPlace] = []
        do throws(StartError) {
            for configuration in configurations {
                let kept = places.first { place in
                    place.configured == configuration.address.value && !next.contains { $0.id == place.id }
                }
                if let kept {
                    next.append(kept)
                } else {
                    next.append(try open(configuration, loops, side, &inheritance))
                }
            }
            for (index, configuration) in configurations.enumerated() { try next[index].permit(configuration) }
        } catch {
            for place in next where !isOpen(place) { place.close() }
            Listeners.removeFiles(of: next, butOf: places)
            throw error
        }
        var sockets = [[ListenerSocket]](repeating: [], count: loops)
        for (index, place) in next.enumerated() {
            let tls = index < security.count ? security[index] : nil
            let role = Listeners.role(role, configurations[index].health, health)
            for (loop, lanes) in place.lanes.enumerated() where loop < loops {
                sockets[loop] += lanes.map { lane in
                    ListenerSocket(
                        id: lane.id, fd: isOpen(place) ? -1 : lane.fd, isShared: place.isShared, role: role,
                        configuration: configurations[index], tls: tls)
                }
            }
        }
        Listeners.removeFiles(of: places, butOf: next)
        places = next
        return sockets
    }

    private static func role(
        _ role: ListenerSocket.Role, _ path: HealthPath?, _ health: LocalHandler?
    ) -> ListenerSocket.Role {
        guard case .gateway = role, let path, let health else { return role }
        return .local(ListenerHandler(path: path.path, health))
    }

    /// The same where nothing was inherited.
    mutating func open(
        _ configurations: [ListenerConfiguration], loops: Int, role: ListenerSocket.Role
    ) throws(StartError) -> [[ListenerSocket]] {
        var nothing = Inheritance()
        return try open(configurations, loops: loops, role: role, inheritance: &nothing)
    }

    private func isOpen(_ place: ListenerPlace) -> Bool { places.contains { $0.id == place.id } }

    /// Takes the files of Unix sockets away; nobody finds the way to them any more.
    func removeFiles() { Listeners.removeFiles(of: places, butOf: []) }

    /// The sockets that a successor gets, as long as the loops have them open.
    func handedOver(_ side: Inheritance.Group.Side) -> [Inheritance.Group] {
        places.compactMap { $0.group(side) }
    }

    private static func removeFiles(of places: [ListenerPlace], butOf kept: [ListenerPlace]) {
        for place in places where !kept.contains(where: { $0.id == place.id }) { place.file?.remove() }
    }

    private mutating func open(
        _ configuration: ListenerConfiguration, _ loops: Int, _ side: Inheritance.Group.Side,
        _ inheritance: inout Inheritance
    ) throws(StartError) -> ListenerPlace {
        if case .descriptor(let number) = configuration.address.value {
            return try .activated(number, configuration, loops: loops, inheritance, nextID: &nextID)
        }
        if let descriptors = inheritance.take(configuration.address.value, for: side) {
            return try .inherited(descriptors, configuration, loops: loops, nextID: &nextID)
        }
        return try .opened(configuration, loops: loops, nextID: &nextID)
    }
}

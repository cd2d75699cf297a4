package import MartletConfig
package import MartletIO
package import MartletProxy
internal import MartletResponder
internal import MartletTLS

/// The addresses that the process listens on, with the sockets of every loop.
package struct Listeners: Sendable {
    private var listeners: [BoundListener] = []
    private var nextID: Int32 = 1

    package init() {}

    /// The bound addresses, with the ports that the system chose.
    package var addresses: [SocketEndpoint] { listeners.map(\.actual) }
    /// The sockets at which connections arrive.
    var descriptors: [Int32] { listeners.flatMap { $0.loopSockets.flatMap { $0.map(\.fd) } } }

    /// Binds new addresses and keeps the sockets of addresses that are already bound, with their new settings.
    /// - Parameters:
    ///   - configurations: the listeners of the configuration.
    ///   - loops: the number of loops that accept.
    ///   - side: the group in which inherited sockets are looked up.
    ///   - role: how requests are handled.
    ///   - health: serves the health paths of public listeners.
    ///   - inherited: the sockets that the process was started with; those of these addresses are removed from it.
    ///   - security: the TLS context of each configuration; an empty array means clear text.
    /// - Returns: the sockets of every loop; −1 stands for a socket that the loop already has.
    /// - Throws: `server.address_in_use` and others; then nothing has changed.
    mutating func open(
        _ configurations: [ListenerConfiguration], loops: Int, side: InheritedSockets.Group.Side = .public,
        role: ListenerSocket.Role, health: ListenerHandler? = nil, inherited: inout InheritedSockets,
        security: [TLSServerContext?] = []
    ) throws(StartError) -> [[ListenerSocket]] {
        var next: [BoundListener] = []
        do throws(StartError) {
            for configuration in configurations {
                let kept = listeners.first { listener in
                    listener.configured == configuration.address.value && !next.contains { $0.id == listener.id }
                }
                if let kept {
                    next.append(kept)
                } else {
                    let acceptsIPv4 = configuration.acceptsIPv4(beside: configurations)
                    next.append(try open(configuration, acceptsIPv4: acceptsIPv4, loops, side, &inherited))
                }
            }
            for (index, configuration) in configurations.enumerated() { try next[index].permit(configuration) }
        } catch {
            for listener in next where !isOpen(listener) { listener.close() }
            Listeners.removeFiles(of: next, butOf: listeners)
            throw error
        }
        var sockets = [[ListenerSocket]](repeating: [], count: loops)
        for (index, listener) in next.enumerated() {
            let tls = index < security.count ? security[index] : nil
            let role = Listeners.role(role, configurations[index].health, health)
            for (loop, loopSockets) in listener.loopSockets.enumerated() where loop < loops {
                sockets[loop] += loopSockets.map { socket in
                    ListenerSocket(
                        id: socket.id, fd: isOpen(listener) ? -1 : socket.fd, isShared: listener.isShared, role: role,
                        configuration: configurations[index], tls: tls)
                }
            }
        }
        Listeners.removeFiles(of: listeners, butOf: next)
        listeners = next
        return sockets
    }

    private static func role(
        _ role: ListenerSocket.Role, _ path: HealthPath?, _ health: ListenerHandler?
    ) -> ListenerSocket.Role {
        guard case .gateway = role, let path, let health else { return role }
        return .local(health.at(path.path))
    }

    /// The same without inherited sockets.
    package mutating func open(
        _ configurations: [ListenerConfiguration], loops: Int, role: ListenerSocket.Role
    ) throws(StartError) -> [[ListenerSocket]] {
        var nothing = InheritedSockets()
        return try open(configurations, loops: loops, role: role, inherited: &nothing)
    }

    func serve(_ address: SocketAddress?) -> Bool { listeners.contains { $0.configured == address } }

    private func isOpen(_ listener: BoundListener) -> Bool { listeners.contains { $0.id == listener.id } }

    /// Removes the files of Unix sockets, so that no new client can connect.
    func removeFiles() { Listeners.removeFiles(of: listeners, butOf: []) }

    /// The sockets for a successor; valid as long as the loops have them open.
    func socketsForSuccessor(_ side: InheritedSockets.Group.Side) -> [InheritedSockets.Group] {
        listeners.compactMap { $0.group(side) }
    }

    private static func removeFiles(of listeners: [BoundListener], butOf kept: [BoundListener]) {
        for listener in listeners where !kept.contains(where: { $0.id == listener.id }) { listener.file?.remove() }
    }

    private mutating func open(
        _ configuration: ListenerConfiguration, acceptsIPv4: Bool, _ loops: Int, _ side: InheritedSockets.Group.Side,
        _ inherited: inout InheritedSockets
    ) throws(StartError) -> BoundListener {
        if case .descriptor(let number) = configuration.address.value {
            return try .activated(number, configuration, loops: loops, inherited, nextID: &nextID)
        }
        if let descriptors = inherited.remove(configuration.address.value, for: side) {
            return try .inherited(descriptors, configuration, loops: loops, nextID: &nextID)
        }
        return try .opened(configuration, acceptsIPv4: acceptsIPv4, loops: loops, nextID: &nextID)
    }
}

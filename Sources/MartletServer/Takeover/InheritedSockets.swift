private import CLinux
internal import MartletConfig
internal import MartletIO

/// The listening sockets that the process was started with, and the process that it takes over from.
///
/// A socket comes from a service manager such as systemd, and is named `fd:3` in the configuration, or from a
/// predecessor, which lists all its sockets in `MARTLET_TAKEOVER`.
package struct InheritedSockets: Sendable {
    /// The sockets of one address.
    struct Group: Sendable, Equatable {
        enum Side: String, Sendable { case `public`, admin }

        let side: Side
        /// As in the configuration: with port 0 if the system chose the port.
        let address: String
        var descriptors: [Int32]
    }

    /// The variable that a predecessor sets: its process id, our end of the channel to it, and a line for each address.
    static let variable = "MARTLET_TAKEOVER"
    /// The variables of socket activation (`sd_listen_fds(3)`); not needed, because `fd:3` names the
    /// descriptor itself.
    static let activation = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"]
    /// Higher descriptors are not examined.
    private static let highest: Int32 = 4096

    /// The sockets of a predecessor that no listener uses yet.
    private(set) var groups: [Group] = []
    /// The sockets that `fd:` may name, open as long as the process runs.
    private(set) var activated: Set<Int32> = []
    /// Other descriptors that were open at startup, such as a supervisor's lock; passed on to a successor unchanged.
    private(set) var others: [Int32] = []
    /// `LISTEN_FDS`: how many descriptors the service manager passed, starting at 3.
    private(set) var announced: Int32?
    /// The process that waits until this one is ready.
    package private(set) var predecessor: Predecessor?

    package init() {}

    init(groups: [Group], activated: Set<Int32> = []) {
        self.groups = groups
        self.activated = activated
    }

    /// Collects the inherited descriptors and removes the variables that name them from the environment.
    ///
    /// To be called before anything else opens a descriptor or starts a thread: every descriptor that is open is
    /// inherited.
    package static func collect() -> InheritedSockets {
        var inherited = InheritedSockets()
        if let text = SystemInformation.environment(variable) { inherited.readTakeover(text) }
        if SystemInformation.environment("LISTEN_PID").flatMap({ pid_t($0) }) == getpid() {
            inherited.announced = SystemInformation.environment("LISTEN_FDS").flatMap { Int32($0) }
        }
        for name in activation + [variable] { unsafe _ = unsetenv(name) }
        // The predecessor's sockets have been set close-on-exec by `readTakeover`.
        for descriptor in 3..<highest where martlet_is_inheritable(descriptor) != 0 {
            if Socket.adopt(descriptor) != nil {
                inherited.activated.insert(descriptor)
            } else {
                inherited.others.append(descriptor)
            }
        }
        return inherited
    }

    /// Ignores a variable that was meant for another process, and descriptors that are not listening sockets.
    private mutating func readTakeover(_ text: String) {
        let lines = text.split(separator: "\n")
        let numbers = lines.first?.split(separator: " ").compactMap { Int32($0) } ?? []
        guard numbers.count == 2, numbers[0] == getppid(),
            let predecessor = Predecessor(numbers[0], channel: numbers[1])
        else { return }
        self.predecessor = predecessor
        groups = lines.dropFirst().compactMap { Group(line: $0) }.filter { group in
            group.descriptors.allSatisfy { Socket.adopt($0) != nil }
        }
    }

    /// Removes and returns the sockets of an address; the caller owns them.
    mutating func remove(_ address: SocketAddress, for side: Group.Side) -> [Int32]? {
        let text = address.configurationText
        guard let index = groups.firstIndex(where: { $0.side == side && $0.address == text }) else { return nil }
        return groups.remove(at: index).descriptors
    }

    mutating func closeUnused() {
        for descriptor in groups.flatMap(\.descriptors) { close(descriptor) }
        groups = []
    }
}

extension InheritedSockets.Group {
    /// Parses `public 127.0.0.1:8080=8,9`; an address may contain spaces and `=`.
    init?(line: Substring) {
        guard let space = line.firstIndex(of: " "), let equals = line.lastIndex(of: "="), space < equals,
            let side = Side(rawValue: String(line[..<space]))
        else { return nil }
        let numbers = line[line.index(after: equals)...].split(separator: ",", omittingEmptySubsequences: false).map {
            Int32($0)
        }
        guard !numbers.isEmpty, numbers.allSatisfy({ $0.map { $0 > 2 } ?? false }) else { return nil }
        self.side = side
        address = String(line[line.index(after: space)..<equals])
        descriptors = numbers.compactMap(\.self)
    }

    var line: String { "\(side.rawValue) \(address)=\(descriptors.map(String.init).joined(separator: ","))" }
}

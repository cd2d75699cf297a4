private import CLinux
internal import MartletConfig
internal import MartletIO

/// What the process was started with: listening sockets, and the process that it takes over from.
///
/// A socket comes from whoever opened it for us, such as systemd, and is named `fd:3` in the configuration; or from a
/// predecessor, which names all of its own in `MARTLET_TAKEOVER`.
package struct Inheritance: Sendable {
    /// Sockets of one address.
    struct Group: Sendable, Equatable {
        enum Side: String, Sendable { case `public`, admin }

        let side: Side
        /// As the configuration has it: with port 0 where the system chose one.
        let address: String
        var descriptors: [Int32]
    }

    /// The variable of a predecessor: its process number, our end of the channel to it, and a line for each address.
    static let variable = "MARTLET_TAKEOVER"
    /// The variables of socket activation (`sd_listen_fds(3)`); `fd:3` says the same without them.
    static let activation = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"]
    /// Descriptors above are not looked at.
    private static let highest: Int32 = 4096

    /// What a predecessor has handed over and nobody has taken yet.
    private(set) var groups: [Group] = []
    /// Sockets that `fd:` may name, for as long as the process lives.
    private(set) var activated: Set<Int32> = []
    /// What else was open at the start, such as a supervisor's lock: it is passed on as it came.
    private(set) var others: [Int32] = []
    /// How many the service manager says that it has passed, from 3 on.
    private(set) var announced: Int32?
    /// Who waits for us to serve.
    private(set) var predecessor: Predecessor?

    package init() {}

    init(groups: [Group], activated: Set<Int32> = []) {
        self.groups = groups
        self.activated = activated
    }

    /// Takes everything over.
    ///
    /// To be called before anything else opens a descriptor or starts a thread: what is open now was handed over, and the
    /// variables that name it leave the environment.
    package static func take() -> Inheritance {
        var inheritance = Inheritance()
        if let text = SystemInformation.environment(variable) { inheritance.readTakeover(text) }
        if SystemInformation.environment("LISTEN_PID").flatMap({ pid_t($0) }) == getpid() {
            inheritance.announced = SystemInformation.environment("LISTEN_FDS").flatMap { Int32($0) }
        }
        for name in activation + [variable] { unsafe _ = unsetenv(name) }
        // What a predecessor handed over is inheritable no more.
        for descriptor in 3..<highest where martlet_is_inheritable(descriptor) != 0 {
            if Socket.adopt(descriptor) != nil {
                inheritance.activated.insert(descriptor)
            } else {
                inheritance.others.append(descriptor)
            }
        }
        return inheritance
    }

    /// A variable that was meant for another process, or names what is no listening socket, counts for nothing.
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

    /// The sockets of an address, which become the caller's.
    mutating func take(_ address: SocketAddress, for side: Group.Side) -> [Int32]? {
        let text = address.configurationText
        guard let place = groups.firstIndex(where: { $0.side == side && $0.address == text }) else { return nil }
        return groups.remove(at: place).descriptors
    }

    /// Closes what the configuration has no use for.
    mutating func closeRest() {
        for descriptor in groups.flatMap(\.descriptors) { close(descriptor) }
        groups = []
    }
}

extension Inheritance.Group {
    /// `public 127.0.0.1:8080=8,9`; an address may hold spaces and `=`.
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

import WorldMachine

/// The ways in which HTTP/1 may be written: each is legal, and means the same.
struct Spelling {
    private var random: SeededRandom
    /// How often something is written in an unusual way, in a thousand.
    private let oddity: Int
    /// Whether it is HTTP/1.0.
    let isOld: Bool

    init(_ random: SeededRandom) {
        self.random = random
        oddity = self.random.pick([0, 0, 20, 200])
        isOld = self.random.chance(60)
    }

    /// The head of a request, up to its empty line.
    mutating func head(_ method: String, _ path: String, _ fields: [String], expects: Bool, version: Int = 1) -> String
    {
        let host = random.chance(oddity) ? random.pick(["API.example.COM", "api.example.com:80"]) : "api.example.com"
        let isAbsolute = random.chance(oddity) && !host.hasSuffix(":80")
        let target = isAbsolute ? "http://\(host)\(path)" : path
        var lines = fields
        lines.insert("Host: \(host)", at: random.chance(oddity) ? lines.count : 0)
        if expects { lines.append(random.chance(oddity) ? "expect: 100-Continue" : "Expect: 100-continue") }
        if random.chance(oddity) {
            lines.append(random.pick(["Connection: , keep-alive ,", "Connection:", "Accept: ,a , , b", "X-Empty:"]))
        }
        let start = random.chance(oddity / 2) ? "\r\n" : ""
        return start + "\(method) \(target) HTTP/1.\(version)\r\n" + lines.map { field($0) + "\r\n" }.joined() + "\r\n"
    }

    private mutating func field(_ line: String) -> String {
        guard random.chance(oddity), let colon = line.firstIndex(of: ":") else { return line }
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        let name =
            switch random.below(3) {
            case 0: line[..<colon].lowercased()
            case 1: line[..<colon].uppercased()
            default: String(line[..<colon])
            }
        return name + ":" + random.pick(["", " ", "  ", "\t", " \t "]) + value + random.pick(["", " ", "\t "])
    }

    /// The line before a chunk.
    mutating func chunk(_ size: Int) -> String {
        guard random.chance(oddity) else { return String(size, radix: 16) + "\r\n" }
        let digits = String(repeating: "0", count: random.below(4)) + String(size, radix: 16, uppercase: true)
        return digits + random.pick(["", ";a=b", ";a", ";a=\"b;c\"", ";a=b;c=d"]) + "\r\n"
    }
}

/// What a client is going to do on a connection of HTTP/1, one after the other.
final class Outbox {
    enum Step {
        case bytes([UInt8])
        case pause(Int64)
        /// Until a response of 100, or another one, has come; a time at most.
        case invitation(Exchange, most: Int64)
        case leave
        case finish
    }

    private let machine: Machine
    private var steps: ArraySlice<Step> = []
    private var generation = 0
    private var isWaiting = false
    private var awaited: Exchange?
    var perform: (Step) -> Void = { _ in }

    init(_ machine: Machine) { self.machine = machine }

    func add(_ more: [Step]) {
        steps += more
        pump()
    }

    /// A response to a request has begun.
    func invited(_ exchange: Exchange) {
        guard exchange === awaited else { return }
        goOn(generation)
    }

    func clear() {
        steps = []
        perform = { _ in }
    }

    private func pump() {
        while !isWaiting, let step = steps.popFirst() {
            switch step {
            case .pause(let time): wait(time)
            case .invitation(let exchange, let most):
                awaited = exchange
                wait(most)
            default: perform(step)
            }
        }
    }

    private func wait(_ time: Int64) {
        generation += 1
        isWaiting = true
        let current = generation
        machine.after(time) { [weak self] in self?.goOn(current) }
    }

    private func goOn(_ current: Int) {
        guard isWaiting, current == generation else { return }
        isWaiting = false
        awaited = nil
        pump()
    }
}

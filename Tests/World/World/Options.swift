import CLinux

/// What the command line asks for.
struct Options {
    static let usage = """
        usage: world SEED [options]           one world; a failure is shrunk
               world FIRST COUNT [options]    a campaign; prints the failures and a summary
               world SEED --times N           the same world N times; the hashes must be the same
          --trace           print every system call and what happens
          --faults 1,2      of the planned faults only these; none: --faults none
          --clients 3:20,4  of the clients only these, with so many requests
          --jobs N          worlds at a time; one for each processor
          --no-shrink       print a failure as it is
          --keep-going      run all seeds, also after a failure
        """

    enum Work {
        case one(UInt64)
        case several(Range<UInt64>)
        case replay(UInt64, times: Int)
    }

    var work: Work
    var traces = false
    var shrinks = true
    var keepsGoing = false
    var jobs = max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1)
    /// What a plan is cut to.
    var cut = Cut()

    init?(_ arguments: [String]) {
        var numbers: [UInt64] = []
        var times: Int?
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--trace": traces = true
            case "--no-shrink": shrinks = false
            case "--keep-going": keepsGoing = true
            case "--jobs":
                guard let number = rest.popFirst().flatMap({ Int($0) }), number > 0 else { return nil }
                jobs = number
            case "--times":
                guard let number = rest.popFirst().flatMap({ Int($0) }), number > 0 else { return nil }
                times = number
            case "--faults":
                guard let text = rest.popFirst() else { return nil }
                cut.faults = text == "none" ? [] : text.split(separator: ",").compactMap { Int($0) }
            case "--clients":
                guard let text = rest.popFirst() else { return nil }
                cut.clients = Dictionary(
                    text.split(separator: ",").compactMap { part in
                        let numbers = part.split(separator: ":").compactMap { Int($0) }
                        return numbers.first.map { ($0, numbers.count > 1 ? numbers[1] : .max) }
                    }, uniquingKeysWith: { first, _ in first })
            default:
                guard let number = UInt64(argument) else { return nil }
                numbers.append(number)
            }
        }
        switch numbers.count {
        case 1: work = times.map { .replay(numbers[0], times: $0) } ?? .one(numbers[0])
        case 2 where times == nil: work = .several(numbers[0]..<numbers[0] + numbers[1])
        default: return nil
        }
    }
}

/// What is left of a plan: the numbers of faults, and clients with the most requests of each.
struct Cut {
    var faults: [Int]?
    var clients: [Int: Int]?

    func apply(to plan: inout Plan) {
        if let faults { plan.faults = plan.faults.indices.filter { faults.contains($0) }.map { plan.faults[$0] } }
        if let clients {
            for index in plan.clients.indices { plan.clients[index] = min(plan.clients[index], clients[index] ?? 0) }
        }
    }

    /// As options of the command line.
    var text: String {
        var parts: [String] = []
        if let faults {
            parts.append("--faults " + (faults.isEmpty ? "none" : faults.map(String.init).joined(separator: ",")))
        }
        if let clients {
            let all = clients.filter { $0.value > 0 }.sorted { $0.key < $1.key }
            let text = all.map { "\($0.key):\($0.value)" }.joined(separator: ",")
            parts.append("--clients " + (text.isEmpty ? "none" : text))
        }
        return parts.joined(separator: " ")
    }
}

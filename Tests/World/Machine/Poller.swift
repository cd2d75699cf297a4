import CLinux

/// What a poller wants to know of a file.
final class Interest {
    unowned let poller: PollerFile
    unowned let file: File
    let number: Int
    var events: Ready
    var isEdge: Bool
    let isExclusive: Bool
    var data: UInt64
    /// Whether it is in the poller's list.
    var isListed = false
    var isRemoved = false

    init(_ poller: PollerFile, _ file: File, _ number: Int, _ bits: UInt32, _ data: UInt64) {
        self.poller = poller
        self.file = file
        self.number = number
        events = Ready(rawValue: bits & 0xffff)
        isEdge = bits & 1 << 31 != 0
        isExclusive = bits & 1 << 28 != 0
        self.data = data
    }
}

/// An epoll instance.
final class PollerFile: File {
    private var all: [Int: Interest] = [:]
    private var list: [Interest] = []

    /// Whether a thread waits for it.
    var waits: Bool { waiters.contains { $0.isWaiting } }
    override var ready: Ready { list.isEmpty ? [] : .input }

    func add(_ interest: Interest) {
        if !interest.isListed {
            interest.isListed = true
            list.append(interest)
        }
        machine.wakeAll(&waiters)
    }

    func remove(_ interest: Interest) {
        interest.isRemoved = true
        all[interest.number] = nil
    }

    func control(_ operation: Int, _ number: Int, _ file: File, _ event: epoll_event?) -> Int {
        let known = all[number]
        switch operation {
        case 1:
            guard known == nil else { return -Int(EEXIST) }
            guard let event else { return -Int(EFAULT) }
            let interest = Interest(self, file, number, event.events, event.data.u64)
            all[number] = interest
            file.interests.append(interest)
            if isReady(interest) { add(interest) }
        case 2:
            guard let known else { return -Int(ENOENT) }
            remove(known)
            file.interests.removeAll { $0 === known }
        default:
            guard let known else { return -Int(ENOENT) }
            guard let event else { return -Int(EFAULT) }
            known.events = Ready(rawValue: event.events & 0xffff)
            known.isEdge = event.events & 1 << 31 != 0
            known.data = event.data.u64
            if isReady(known) { add(known) }
        }
        return 0
    }

    private func isReady(_ interest: Interest) -> Bool {
        !interest.file.ready.isDisjoint(with: interest.events.union(.always))
    }

    /// Collects events. A level-triggered one stays in the list for as long as it holds.
    func collect(_ events: UnsafeMutablePointer<epoll_event>, _ most: Int) -> Int {
        var count = 0
        var kept: [Interest] = []
        let current = list
        list.removeAll(keepingCapacity: true)
        for interest in current {
            guard !interest.isRemoved else { continue }
            let found = interest.file.ready.intersection(interest.events.union(.always))
            guard !found.isEmpty else {
                interest.isListed = false
                continue
            }
            guard count < most else {
                kept.append(interest)
                continue
            }
            events[count].events = found.rawValue
            events[count].data.u64 = interest.data
            count += 1
            if interest.isEdge { interest.isListed = false } else { kept.append(interest) }
        }
        list = kept
        return count
    }

    override func closed() {
        for interest in all.values.sorted(by: { $0.number < $1.number }) {
            interest.isRemoved = true
            interest.file.interests.removeAll { $0 === interest }
        }
        all.removeAll()
        list.removeAll()
    }
}

/// Who causes a job of a ``ThreadPool`` or a value in a store: a member of a group, such as an address in a network, or
/// a subject or key that the gateway knows.
@frozen public struct WorkOwner: Hashable, Sendable {
    package let group: UInt64
    package let member: UInt64

    public init(group: UInt64, member: UInt64) {
        self.group = group
        self.member = member
    }

    /// A subject, a user or a key: a group of its own.
    /// - Parameter name: only its hash is kept, which differs between processes.
    public init(named name: String) {
        let hash = UInt64(truncatingIfNeeded: name.hashValue)
        self.init(group: hash, member: hash)
    }

    /// The common owner of all jobs whose origin is not known.
    public static let anonymous = WorkOwner(group: 0, member: 0)

    /// Who causes what the current task does: the network of the client whose request it serves. Whatever the task waits
    /// for, a thread, a connection or a slot, is divided by it.
    @TaskLocal package static var current = WorkOwner.anonymous
    /// The gateway itself, for what no client can multiply; it has no share.
    public static let gateway = WorkOwner(group: .max, member: .max)
}

/// A bounded queue that serves its owners round-robin, so that no owner waits behind all elements of another.
///
/// Groups take turns, and within a group its members; the elements of one member are served in order. When the queue
/// is full, an element of a group displaces the newest one of a group that has more.
@frozen package struct FairQueue<Element> {
    /// The maximum numbers of elements.
    @frozen package struct Limits: Sendable {
        let total: Int
        let group: Int
        let member: Int

        /// - Parameter total: where the bound leaves it to the configuration.
        package init(_ bound: SharedBound, total: Int? = nil) {
            let total = total ?? bound.total
            self.init(total: total, group: bound.networkPart(of: total), member: bound.addressPart(of: total))
        }

        /// No limits of the queue's own, which puts in order what a bound lets in.
        package static func behind(_: SharedBound) -> Limits { Limits(total: .max, group: .max, member: .max) }

        init(total: Int, group: Int, member: Int) {
            (self.total, self.group, self.member) = (total, group, member)
        }
    }

    /// The result of appending an element.
    @frozen package enum Outcome {
        case queued
        /// The queue is full for its owner.
        case rejected
        /// Queued; the associated element was displaced.
        case queuedInsteadOf(Element)
    }

    private let limits: Limits
    private var groups: [UInt64: FairGroup<Element>] = [:]
    private var turns = FIFO<UInt64>()
    package private(set) var count = 0

    package init(_ limits: Limits) { self.limits = limits }

    /// Whether an owner may append one more.
    func hasCapacity(for owner: WorkOwner) -> Bool {
        let group = groups[owner.group]
        let groupCount = group?.count ?? 0
        guard groupCount < limits.group, (group?.count(of: owner.member) ?? 0) < limits.member else { return false }
        return count < limits.total || groups.contains { $0.value.count > groupCount + 1 }
    }

    /// Appends an element if its owner may have one more.
    package mutating func append(_ element: Element, of owner: WorkOwner) -> Outcome {
        guard hasCapacity(for: owner) else { return .rejected }
        guard count >= limits.total else {
            insert(element, of: owner)
            return .queued
        }
        guard let displaced = removeLastOfLargest() else { return .rejected }
        insert(element, of: owner)
        return .queuedInsteadOf(displaced)
    }

    /// Removes and returns the element whose turn it is.
    package mutating func popFirst() -> Element? {
        while let key = turns.popFirst() {
            guard let element = groups[key]?.popFirst() else {
                groups[key] = nil
                continue
            }
            count -= 1
            if groups[key]?.count ?? 0 > 0 { turns.append(key) } else { groups[key] = nil }
            return element
        }
        return nil
    }

    /// Removes and returns all elements, in the order in which they would have been served.
    package mutating func popAll() -> [Element] {
        var all: [Element] = []
        while let element = popFirst() { all.append(element) }
        return all
    }

    /// Removes elements wherever they are.
    package mutating func removeAll(where isUnwanted: (Element) -> Bool) {
        for key in groups.keys { count -= groups[key]?.removeAll(where: isUnwanted) ?? 0 }
    }

    private mutating func insert(_ element: Element, of owner: WorkOwner) {
        if groups[owner.group] == nil {
            groups[owner.group] = FairGroup()
            turns.append(owner.group)
        }
        groups[owner.group]?.append(element, of: owner.member)
        count += 1
    }

    /// Removes the newest element of the group that has the most.
    private mutating func removeLastOfLargest() -> Element? {
        guard let largest = groups.max(by: { $0.value.count < $1.value.count }),
            let element = groups[largest.key]?.removeLast()
        else { return nil }
        count -= 1
        return element
    }
}

/// The members of one group.
///
/// Here and above, a key has an entry in the dictionary exactly as long as it has a turn.
private struct FairGroup<Element> {
    private var lines: [UInt64: FIFO<Element>] = [:]
    private var turns = FIFO<UInt64>()
    private(set) var count = 0

    /// The number of elements of one member.
    func count(of member: UInt64) -> Int { lines[member]?.count ?? 0 }

    mutating func append(_ element: Element, of member: UInt64) {
        if lines[member] == nil {
            lines[member] = FIFO()
            turns.append(member)
        }
        lines[member]?.append(element)
        count += 1
    }

    /// The element of the member whose turn it is; a member without elements loses its turn.
    mutating func popFirst() -> Element? {
        while let key = turns.popFirst() {
            guard let element = lines[key]?.popFirst() else {
                lines[key] = nil
                continue
            }
            count -= 1
            if lines[key]?.isEmpty == false { turns.append(key) } else { lines[key] = nil }
            return element
        }
        return nil
    }

    /// - Returns: how many were removed; a member that has none left keeps its turn until it comes.
    mutating func removeAll(where isUnwanted: (Element) -> Bool) -> Int {
        let before = count
        for key in lines.keys {
            guard let all = lines[key]?.popAll() else { continue }
            for element in all {
                if isUnwanted(element) { count -= 1 } else { lines[key]?.append(element) }
            }
        }
        return before - count
    }

    /// Removes the newest element of the member that has the most.
    mutating func removeLast() -> Element? {
        guard let largest = lines.max(by: { $0.value.count < $1.value.count }),
            let element = lines[largest.key]?.popLast()
        else { return nil }
        count -= 1
        return element
    }
}

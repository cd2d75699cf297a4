/// Whose a piece of work is, where a ``WorkPool`` is divided: a member of a group, such as an address of a network.
public struct WorkOwner: Hashable, Sendable {
    let group: UInt64
    let member: UInt64

    public init(group: UInt64, member: UInt64) {
        self.group = group
        self.member = member
    }

    /// Who is not told apart from others.
    public static let anybody = WorkOwner(group: 0, member: 0)
}

/// A bounded queue that serves its owners in turn, so that nobody waits behind all that another one has handed in.
///
/// Groups take turns, and within a group its members; what one member has handed in is served in order. When the queue
/// is full, a group that has less in it than another takes the other's last place.
package struct FairQueue<Element> {
    /// How many elements may wait.
    package struct Limits: Sendable {
        let total: Int
        let group: Int
        let member: Int

        package init(total: Int, group: Int, member: Int) {
            self.total = total
            self.group = group
            self.member = member
        }

        /// For elements that are bounded elsewhere.
        package static var none: Limits { Limits(total: .max, group: .max, member: .max) }
    }

    /// What became of an element.
    package enum Outcome {
        case queued
        /// There is no place for it.
        case refused
        /// It has the place of another one, which is refused in its stead.
        case queuedInsteadOf(Element)
    }

    private let limits: Limits
    private var groups: [UInt64: FairGroup<Element>] = [:]
    private var turns = FIFO<UInt64>()
    package private(set) var count = 0

    package init(_ limits: Limits) { self.limits = limits }

    /// Whether an owner may add one more.
    func hasRoom(for owner: WorkOwner) -> Bool {
        let group = groups[owner.group]
        let groupCount = group?.count ?? 0
        guard groupCount < limits.group, (group?.count(of: owner.member) ?? 0) < limits.member else { return false }
        return count < limits.total || groups.contains { $0.value.count > groupCount + 1 }
    }

    /// Adds an element, if its owner may have one more.
    package mutating func append(_ element: Element, of owner: WorkOwner) -> Outcome {
        guard hasRoom(for: owner) else { return .refused }
        guard count >= limits.total else {
            insert(element, of: owner)
            return .queued
        }
        guard let displaced = dropLastOfLargest() else { return .refused }
        insert(element, of: owner)
        return .queuedInsteadOf(displaced)
    }

    /// Takes the element whose turn it is.
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

    /// Takes everything, in the order in which it would have been served.
    mutating func takeAll() -> [Element] {
        var all: [Element] = []
        while let element = popFirst() { all.append(element) }
        return all
    }

    private mutating func insert(_ element: Element, of owner: WorkOwner) {
        if groups[owner.group] == nil {
            groups[owner.group] = FairGroup()
            turns.append(owner.group)
        }
        groups[owner.group]?.append(element, of: owner.member)
        count += 1
    }

    /// Takes the last element of the group that has most.
    private mutating func dropLastOfLargest() -> Element? {
        guard let largest = groups.max(by: { $0.value.count < $1.value.count }),
            let element = groups[largest.key]?.dropLast()
        else { return nil }
        count -= 1
        return element
    }
}

/// The members of one group.
///
/// A key has an entry in the dictionary exactly as long as it has a turn, here and above.
private struct FairGroup<Element> {
    private var lines: [UInt64: FIFO<Element>] = [:]
    private var turns = FIFO<UInt64>()
    private(set) var count = 0

    /// How much of one member waits.
    func count(of member: UInt64) -> Int { lines[member]?.count ?? 0 }

    mutating func append(_ element: Element, of member: UInt64) {
        if lines[member] == nil {
            lines[member] = FIFO()
            turns.append(member)
        }
        lines[member]?.append(element)
        count += 1
    }

    /// The element of the member whose turn it is; a member that was left without any has lost its turn.
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

    /// The last element of the member that has most.
    mutating func dropLast() -> Element? {
        guard let largest = lines.max(by: { $0.value.count < $1.value.count }),
            let element = lines[largest.key]?.popLast()
        else { return nil }
        count -= 1
        return element
    }
}

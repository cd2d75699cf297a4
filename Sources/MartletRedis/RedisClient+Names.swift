package import MartletCore

/// Finding keys by their names, which takes as long as there are keys: for operators.
extension RedisClient {
    /// Names that a server compares before it serves other commands: a millisecond's work.
    private static let namesAtOnce = 2048
    /// How long all servers together may take.
    private static let searchTimeout = Duration.seconds(8)

    /// A pattern that matches a text alone.
    package static func pattern(matching text: [UInt8]) -> [UInt8] {
        text.flatMap { Array(#"*?[]^-\"#.utf8).contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
    }

    /// The name of a key that matches a pattern, on any master; `nil` if there is none.
    /// - Throws: `redis.timeout` if not every name could be compared in time.
    package func name(matching pattern: [UInt8]) async throws(StoreError) -> [UInt8]? {
        let deadline = clock.monotonicTime + Self.searchTimeout
        for key in try await keysOfMasters() {
            var cursor = Array("0".utf8)
            repeat {
                guard clock.monotonicTime < deadline else {
                    throw StoreError(code: .redisTimeout, message: "too many keys to find one by its name in time")
                }
                let reply = try await command(
                    [
                        Array("SCAN".utf8), cursor, Array("MATCH".utf8), pattern, Array("COUNT".utf8),
                        Array(String(Self.namesAtOnce).utf8),
                    ], on: key
                ).accepted()
                guard case .array(let parts) = reply, parts.count == 2, case .bytes(let next) = parts[0],
                    case .array(let names) = parts[1]
                else { throw StoreError(code: .redisReplyUnexpected, message: "unexpected reply to SCAN") }
                for case .bytes(let name) in names { return name }
                cursor = next
            } while cursor != Array("0".utf8)
        }
        return nil
    }

    /// A key of each master, by which commands reach it; `nil` where there is only one.
    private func keysOfMasters() async throws(StoreError) -> [[UInt8]?] {
        guard isCluster else { return [nil] }
        let reply = try await command([Array("CLUSTER".utf8), Array("SLOTS".utf8)])
        // A node that leaves out its own host is another one than those that have one.
        guard let ranges = SlotMap.ranges(reply, from: .tcp(host: "-", port: 0)) else {
            throw StoreError(code: .redisReplyUnexpected, message: "unexpected reply to CLUSTER SLOTS")
        }
        return HashSlot.keys(
            in: Dictionary(ranges.map { ($0.master, $0.slots.lowerBound) }) { first, _ in first }.values)
    }
}

extension HashSlot {
    /// A key for each of some slots.
    static func keys(in slots: some Collection<UInt16>) -> [[UInt8]] {
        var (missing, keys) = (Set(slots), [[UInt8]]())
        var number: UInt32 = 0
        // Among so many keys there is one of every slot.
        while !missing.isEmpty, number < 1 << 20 {
            let key = Array(String(number).utf8)
            if missing.remove(HashSlot(of: key).number) != nil { keys.append(key) }
            number += 1
        }
        return keys
    }
}

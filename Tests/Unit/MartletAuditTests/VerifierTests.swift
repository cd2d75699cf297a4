import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@testable import MartletAudit

@Suite struct `The verification of an audit log` {
    /// One way to tamper with eight lines.
    struct Tampering: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let line: Int
        let problem: AuditProblem
        let change: @Sendable (inout [[UInt8]]) throws -> Void
    }

    static let tamperings: [Tampering] = [
        Tampering(testDescription: "a removed event", line: 3, problem: .removed) { $0.remove(at: 2) },
        Tampering(testDescription: "a removed head", line: 5, problem: .removed) { $0.remove(at: 4) },
        Tampering(testDescription: "several removed lines", line: 3, problem: .removed) { $0.removeSubrange(2..<6) },
        Tampering(testDescription: "a missing beginning", line: 1, problem: .missingStart) { $0.removeFirst() },
        Tampering(testDescription: "a missing beginning up to a head", line: 1, problem: .missingStart) {
            $0.removeSubrange(0..<4)
        },
        Tampering(testDescription: "a changed event", line: 3, problem: .changed) {
            $0[2] = $0[2].replacing("usr_2", with: "usr_9")
        },
        Tampering(testDescription: "a changed number", line: 3, problem: .removed) {
            $0[2] = $0[2].replacing("\"seq\":2", with: "\"seq\":6")
        },
        Tampering(testDescription: "a changed hash", line: 3, problem: .changed) {
            $0[2] = $0[2].replacing("\"prev\":\"", with: "\"prev\":\"0").dropLastHashDigit()
        },
        Tampering(testDescription: "a changed event before a head", line: 4, problem: .changed) {
            $0[3] = $0[3].replacing("usr_3", with: "usr_9")
        },
        Tampering(testDescription: "a changed head", line: 5, problem: .badSignature) {
            $0[4] = $0[4].replacing("periodic", with: "resume")
        },
        Tampering(testDescription: "a changed last head", line: 8, problem: .badSignature) {
            $0[7] = $0[7].replacing("\"cause\":\"end\"", with: "\"cause\":\"key\"")
        },
        Tampering(testDescription: "two lines in another order", line: 3, problem: .reordered) { $0.swapAt(2, 3) },
        Tampering(testDescription: "a line that was moved up", line: 2, problem: .reordered) {
            $0.insert($0.remove(at: 5), at: 1)
        },
        Tampering(testDescription: "a line that was moved down", line: 2, problem: .reordered) {
            $0.insert($0.remove(at: 1), at: 5)
        },
        Tampering(testDescription: "a duplicated line", line: 4, problem: .duplicated) { $0.insert($0[2], at: 3) },
        Tampering(testDescription: "a duplicated line far away", line: 8, problem: .duplicated) {
            $0.insert($0[1], at: 7)
        },
        Tampering(testDescription: "a line that is none", line: 3, problem: .malformed) { lines in
            lines.insert(Array("nothing".utf8), at: 2)
        },
        Tampering(testDescription: "an empty line", line: 3, problem: .malformed) { $0.insert([], at: 2) },
        Tampering(testDescription: "a line that is none at the end", line: 9, problem: .malformed) { lines in
            lines.append(Array("nothing".utf8))
        },
        Tampering(testDescription: "an inserted line that fits", line: 3, problem: .inserted) { lines in
            let before = try #require(AuditLine(lines[2]))
            var chain = AuditChain(name: before.chain, sequence: before.sequence, last: before.previous)
            lines.insert(chain.append(AuditEvent(.link).body(at: 0)), at: 2)
        },
        Tampering(testDescription: "an inserted line with another hash", line: 3, problem: .inserted) { lines in
            let before = try #require(AuditLine(lines[2]))
            var chain = AuditChain(name: before.chain, sequence: before.sequence, last: AuditChain.hash([1]))
            lines.insert(chain.append(AuditEvent(.link).body(at: 0)), at: 2)
        },
        Tampering(testDescription: "a line of another log", line: 4, problem: .foreign) { lines in
            lines.insert(try SampleLog.closed().lines[3], at: 3)
        },
        Tampering(testDescription: "two logs in one file", line: 3, problem: .foreign) { lines in
            let other = try SampleLog.closed().lines
            lines = zip(lines, other).flatMap { [$0, $1] }
            lines.remove(at: 1)
        },
        Tampering(testDescription: "a head that someone else has signed", line: 5, problem: .unknownKey) { lines in
            let head = try #require(AuditLine(lines[4]))
            var chain = AuditChain(name: head.chain, sequence: head.sequence, last: head.previous)
            lines[4] = try chain.append(AuditHead(cause: .periodic), by: AuditKey(), at: 0)
        },
        Tampering(testDescription: "a signature of another head", line: 8, problem: .badSignature) { lines in
            let text = String(decoding: lines[4], as: UTF8.self)
            let signature = try #require(text.split(separator: "\"signature\":\"").last)
            let last = String(decoding: lines[7], as: UTF8.self)
            let rest = try #require(last.split(separator: "\"signature\":\"").first)
            lines[7] = Array((rest + "\"signature\":\"" + signature).utf8)
        },
    ]

    @Test(arguments: tamperings)
    func `finds`(tampering: Tampering) throws {
        var lines = try SampleLog.closed().lines
        #expect(lines.count == 8)
        try tampering.change(&lines)
        let finding = result(lines).finding
        #expect(finding == .init(file: "file1", line: tampering.line, problem: tampering.problem))
    }

    @Test func `accepts an unchanged log`() throws {
        let log = try SampleLog.closed()
        let found = result(log.lines)
        #expect(found.isGood && found.lines == 8 && found.heads == 3 && found.unsigned == 0 && found.isClosed)
        #expect(found.lastHead == log.stream.chain.last && found.keys == [AuditKey.forTests.name])
        let withoutKey = result(log.lines, trusting: [])
        #expect(withoutKey.isGood)
    }

    @Test func `counts lines that no head covers yet`() throws {
        var log = try SampleLog()
        try log.add("usr_1", "usr_2")
        let found = result(log.lines)
        #expect(found.isGood && found.unsigned == 2 && !found.isClosed)
    }

    @Test func `finds a missing end by the head that was there`() throws {
        let log = try SampleLog.closed()
        let head = log.stream.chain.last
        #expect(result(log.lines, head: head).isGood)
        let truncated = Array(log.lines.prefix(5))
        #expect(result(truncated).isGood)
        #expect(result(truncated, head: head).finding == .init(file: "file1", line: 5, problem: .headMissing))
    }

    @Test func `rejects an empty file`() throws {
        #expect(result([]).finding == .init(file: "file1", line: 0, problem: .empty))
        #expect(result().finding?.problem == .empty)
        let log = try SampleLog.closed()
        #expect(result(log.lines, []).finding == .init(file: "file2", line: 0, problem: .empty))
    }

    @Test func `rejects a last line that was not written to its end`() throws {
        var log = try SampleLog.closed()
        log.lines.append(Array(log.lines[2].prefix(40)))
        #expect(result(log.lines, tornEnd: true).finding == .init(file: "file1", line: 9, problem: .torn))
    }

    @Test func `accepts a torn line that a head closes off, and no other`() throws {
        var log = try SampleLog()
        try log.add("usr_1")
        let fragment = Array("{\"seq\":2,\"prev".utf8)
        log.lines.append(fragment)
        try log.add(AuditHead(cause: .torn, torn: AuditChain.hash(fragment)))
        try log.add("usr_2")
        let found = result(log.lines)
        #expect(found.isGood && found.torn == 1 && found.lines == 4)
        var changed = log.lines
        changed[2] = Array("{\"seq\":2,\"next".utf8)
        #expect(result(changed).finding == .init(file: "file1", line: 3, problem: .malformed))
        changed.remove(at: 2)
        #expect(result(changed).finding == .init(file: "file1", line: 3, problem: .removed))
    }

    @Test func `follows a log over its files, in their order only`() throws {
        var first = try SampleLog()
        try first.add("usr_1")
        try first.add(AuditHead(cause: .rotation))
        var second = try SampleLog(chain: first.stream.chain)
        try second.add("usr_2")
        try second.add(AuditHead(cause: .rotation))
        var third = try SampleLog(chain: second.stream.chain)
        try third.add(AuditHead(cause: .end))
        #expect(result(first.lines, second.lines, third.lines).isGood)
        #expect(result(second.lines).isGood)
        #expect(result(first.lines + second.lines + third.lines).isGood)
        let wrong = AuditResult.Finding(file: "file2", line: 1, problem: .notContinued)
        #expect(result(first.lines, third.lines).finding == wrong)
        #expect(result(second.lines, first.lines).finding == wrong)
        #expect(result(first.lines, try SampleLog.closed().lines).finding == wrong)
        #expect(result(Array(first.lines.dropLast()), second.lines).finding == wrong)
    }

    @Test func `trusts the given keys only`() throws {
        let other = try AuditKey()
        var log = try SampleLog()
        try log.add("usr_1")
        log.stream.key = other
        try log.add(AuditHead(cause: .key))
        #expect(result(log.lines, trusting: [.forTests, other]).isGood)
        #expect(result(log.lines).finding == .init(file: "file1", line: 3, problem: .unknownKey))
        #expect(result(log.lines, trusting: [other]).finding?.line == 1)
    }

    @Test func `says how many events were lost`() throws {
        var log = try SampleLog()
        log.stream.lost = 12
        try log.add(AuditHead(cause: .end))
        #expect(result(log.lines).lost == 12)
    }

    @Test func `reads no more than a line's worth of what is none`() throws {
        var log = try SampleLog.closed()
        log.lines.insert(contentsOf: [[UInt8]](repeating: [], count: 200_000), at: 1)
        #expect(result(log.lines).finding == .init(file: "file1", line: 2, problem: .malformed))
        let end = log.lines[0] + [UInt8](repeating: 0x0A, count: AuditTail.bytes)
        #expect(AuditTail(end)?.torn != nil)
    }

    @Test func `survives any bytes`() throws {
        var generator = SeededGenerator(seed: 7)
        let log = try SampleLog.closed()
        for _ in 0..<2000 {
            var lines = log.lines
            let line = Int.random(in: 0..<lines.count, using: &generator)
            let index = Int.random(in: 0..<lines[line].count, using: &generator)
            let byte = UInt8.random(in: 0...255, using: &generator)
            guard lines[line][index] != byte else { continue }
            lines[line][index] = byte
            let found = result(lines)
            // The last head may become an event that nothing has signed yet, as if it were missing.
            let isMissingHead = line == lines.count - 1 && found.unsigned == 3
            #expect(!found.isGood || isMissingHead, "line \(line), byte \(index)")
        }
    }
}

extension [UInt8] {
    /// Makes up for a digit that was put in front of a hash.
    fileprivate func dropLastHashDigit() -> [UInt8] {
        var copy = self
        if let end = String(decoding: self, as: UTF8.self).firstRange(of: "\",\"chain\"") {
            let text = String(decoding: self, as: UTF8.self)
            copy.remove(at: text.utf8.distance(from: text.startIndex, to: end.lowerBound) - 1)
        }
        return copy
    }
}

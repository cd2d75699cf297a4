import MartletCore
import Testing

@Suite struct `Byte buffers` {
    private func expect(
        _ buffer: borrowing ByteBuffer, _ expected: String, at location: SourceLocation = #_sourceLocation
    ) {
        let text = String(decoding: buffer.array, as: UTF8.self)
        #expect(text == expected, sourceLocation: location)
    }

    @Test(arguments: [0, 1, 9, 10, 99, 100, 12_345, -1, -908, Int.max, Int.min])
    func `numbers come out in decimal`(number: Int) {
        var buffer = ByteBuffer()
        buffer.append(decimal: number)
        expect(buffer, String(number))
    }

    @Test func `numbers of every width are written in decimal, whatever follows them`() {
        var buffer = ByteBuffer()
        var expected = ""
        var power = 1
        for _ in 1...19 {
            for number in [power - 1, power, power + 1, power * 5 + 7, power / 3, -power, -power - 1] {
                buffer.append(decimal: number)
                buffer.append(",")
                expected += "\(number),"
            }
            power = power.multipliedReportingOverflow(by: 10).partialValue
        }
        for number in 0...10_100 {
            buffer.append(decimal: number)
            expected += "\(number)"
        }
        expect(buffer, expected)
    }

    @Test func `short copies are complete wherever the buffer ends`() {
        let source = (0..<200).map { UInt8($0) }
        for count in 0...200 {
            for before in [0, 1, 31, 63] {
                // The buffer is exactly as large as the input, and so is the memory that is read.
                var buffer = ByteBuffer(capacity: before + count)
                for _ in 0..<before { buffer.append(0xEE) }
                let run = Array(source.prefix(count))
                buffer.append(run)
                buffer.append(0xDD)
                let bytes = buffer.array
                #expect(bytes == Array(repeating: 0xEE, count: before) + run + [0xDD])
            }
        }
    }

    @Test func `take leaves an empty buffer`() {
        var buffer = ByteBuffer()
        buffer.append("before")
        buffer.consume(2)
        var taken = buffer.take()
        let left = buffer.isEmpty
        #expect(left)
        for number in 0..<100 { taken.append(decimal: number % 10) }
        buffer.append("lost")
        buffer = taken
        let count = buffer.count
        #expect(count == 104)
        buffer.truncate(to: 6)
        expect(buffer, "fore01")
    }

    @Test(arguments: [0, 1, 0xF, 0x10, 0xABC, 0xFFFF_FFFF, UInt.max])
    func `numbers come out in hexadecimal`(number: UInt) {
        var buffer = ByteBuffer()
        buffer.append(hexadecimal: number)
        expect(buffer, String(number, radix: 16))
    }

    @Test(arguments: [0, 1, 9, 10, 0x1234_5678, 0x9ABC_DEF0, UInt32.max])
    func `eight digits are always eight`(number: UInt32) {
        var buffer = ByteBuffer()
        buffer.append(eightDigits: number)
        let digits = String(number, radix: 16)
        expect(buffer, String(repeating: "0", count: 8 - digits.count) + digits)
    }

    @Test(arguments: [0, 1, 0x1234_5678_9ABC_DEF0, UInt64.max])
    func `sixteen digits are always sixteen`(number: UInt64) {
        var buffer = ByteBuffer()
        buffer.append(sixteenDigits: number)
        let digits = String(number, radix: 16)
        expect(buffer, String(repeating: "0", count: 16 - digits.count) + digits)
    }

    @Test func `consuming removes bytes from the front and keeps the order`() {
        var buffer = ByteBuffer()
        var model: [UInt8] = []
        var next: UInt8 = 0
        for round in 1...500 {
            for _ in 0..<(round % 37) {
                buffer.append(next)
                model.append(next)
                next &+= 1
            }
            let used = min(round % 23, model.count)
            buffer.consume(used)
            model.removeFirst(used)
            let count = buffer.count
            #expect(count == model.count)
        }
        let rest = buffer.array
        #expect(rest == model)
    }

    @Test func `truncating keeps the front, releasing empties the buffer`() {
        var buffer = ByteBuffer(capacity: 4)
        buffer.append("abcdef")
        buffer.consume(1)
        buffer.truncate(to: 2)
        expect(buffer, "bc")
        buffer.truncate(to: 10)
        expect(buffer, "bc")
        buffer.release()
        buffer.append(text: "é")
        let bytes = buffer.array
        #expect(bytes == [0xC3, 0xA9])
    }

    @Test func `only letters are lowercased`() {
        var buffer = ByteBuffer()
        let all = (0...255).map { UInt8($0) }
        unsafe all.withUnsafeBufferPointer { unsafe buffer.append(lowercasing: $0) }
        let lowered = buffer.array
        #expect(lowered == all.map { (65...90).contains($0) ? $0 + 32 : $0 })
    }
}

import Testing

@testable import MartletCore

@Suite struct OwnTokenTests {
    private func ask(_ text: String, _ question: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        let bytes = Array(text.utf8)
        return unsafe bytes.withUnsafeBufferPointer { unsafe question($0) }
    }

    @Test func `every kind has a prefix of its own, in the form that is searched for`() {
        let prefixes = OwnToken.allCases.map(\.prefix)
        #expect(Set(prefixes) == ["mat_", "mrt_", "mct_", "mak_", "mlt_", "moc_"] && prefixes.count == 6)
        for prefix in prefixes {
            #expect(prefix.utf8.count == OwnToken.prefixLength && prefix.first == "m" && prefix.last == "_")
            #expect(
                unsafe ask(prefix) { unsafe OwnToken.mayAppear(in: $0) && OwnToken(prefixOf: $0)?.prefix == prefix })
        }
    }

    @Test(
        arguments: [
            "Bearer %x", "bearer   %x", "Bearer\t%x", "%x", "Token %x", "Bearer \"%x\"", "Bearer %x,",
            "Digest a=b,c=%x", "x %", "https://a/reset?token=%x", "/reset/%x",
        ])
    func `is found wherever a word begins with its prefix`(value: String) {
        for kind in OwnToken.allCases {
            let text = value.replacing("%", with: kind.prefix)
            #expect(unsafe ask(text) { unsafe OwnToken.appears(in: $0) }, "\(text)")
            #expect(unsafe ask(text) { unsafe OwnToken.appears(inAuthorization: $0) }, "\(text)")
        }
    }

    @Test(
        arguments: [
            "", "mat", "Bearer eyJ.format_x", "Bearer a-mat_x", "Bearer a_mrt_x", "Bearer Mat_x", "Basic bWF0X3g6",
            "mxt_a", "mno_a", "mat-x_", "m t_",
        ])
    func `is not found elsewhere`(value: String) {
        #expect(unsafe !ask(value) { unsafe OwnToken.appears(in: $0) })
    }

    @Test(
        arguments: [
            // mak_x:, :mak_x, user:mak_x, and the same in the other alphabet and without padding.
            ("Basic bWFrX3g6", true), ("basic Om1ha194", true), ("BASIC  dXNlcjptYWtfeA==", true),
            ("Basic dXNlcjptYWtfeA", true), ("Basic eDp5", false), ("Basic", false), ("Basic ", false),
            ("Bearer bWFrX3g6", false), ("Basic !!!bWFr!X3g6", true),
        ] as [(String, Bool)])
    func `is found as a name or password of Basic`(value: String, expected: Bool) {
        #expect(unsafe ask(value) { unsafe OwnToken.appears(inAuthorization: $0) } == expected)
    }

    @Test func `the form is found at every place of a text of any length`() {
        for count in 0...150 {
            let dots = String(repeating: ".", count: count)
            #expect(unsafe !ask(dots) { unsafe OwnToken.mayAppear(in: $0) }, "\(count)")
            for index in 0..<max(count - 3, 0) {
                let text = String(dots.prefix(index)) + "mak_" + String(dots.dropFirst(index + 4))
                #expect(
                    unsafe ask(text) { unsafe OwnToken.mayAppear(in: $0) && OwnToken.appears(in: $0) },
                    "\(count) \(index)")
            }
        }
    }

    @Test func `the words are found one after the other, with their ends`() {
        let bytes = Array("a=mak_1-2_3, /mlt_ab.c mat_".utf8)
        let words = unsafe bytes.withUnsafeBufferPointer { text in
            var found: [String] = []
            var start = 0
            while let word = unsafe OwnToken.firstWord(in: text, from: start) {
                found.append(unsafe String(decoding: text[word], as: UTF8.self))
                start = word.upperBound
            }
            return found
        }
        #expect(words == ["mak_1-2_3", "mlt_ab", "mat_"])
    }
}

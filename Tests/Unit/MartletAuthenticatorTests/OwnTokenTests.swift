import Testing

@testable import MartletAuthenticator

@Suite struct OwnTokenTests {
    private func isHeld(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return unsafe bytes.withUnsafeBufferPointer { unsafe OwnToken.appears(in: $0) }
    }

    @Test(
        arguments: [
            "Bearer mat_x", "bearer   mrt_x", "Bearer\tmat_x", "mat_x", "Token mrt_x", "Bearer \"mat_x\"",
            "Bearer mat_x,",
            "Digest a=b,c=mat_x", "x mat_",
        ])
    func `is found wherever a word begins with its prefix`(value: String) {
        #expect(isHeld(value))
    }

    @Test(
        arguments: [
            "", "mat", "Bearer eyJ.format_x", "Bearer a-mat_x", "Bearer a_mrt_x", "Bearer Mat_x", "Basic bWF0X3g6",
            "mxt_a",
        ])
    func `is not found elsewhere`(value: String) {
        #expect(!isHeld(value))
    }
}

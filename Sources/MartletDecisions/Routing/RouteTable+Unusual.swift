package import MartletHTTP
package import MartletResponder
package import MartletRouter

extension RouteTable {
    /// Why a request with an uncommon method or target form is rejected, if it is.
    package func rejection(ofUnusual head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Failure? {
        if head.method == .connect || head.method == .trace { return .methodNeverAllowed }
        if head.isAsteriskForm { return .noRoute }
        let isMisspelled = head.method == .other && hasMethodInOtherCase(bytes.extracting(head.methodText.bounds))
        return isMisspelled ? .head(.methodCase) : nil
    }
}

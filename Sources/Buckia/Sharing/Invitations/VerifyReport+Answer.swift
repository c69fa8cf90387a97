import BuckiaFormat
import BuckiaLedger

extension VerifyReport.File {
  /// Checks the answer to an invitation. Its proof only the author of the invitation can check, and does when it is applied.
  ///
  /// - Parameters:
  ///   - item: The file.
  ///   - senders: What keys are called.
  init(answer item: InboundItem, _ senders: KnownSenders) {
    do {
      let acceptance = try Acceptance(verifying: SmallText.contents(of: item.open().file.input, item.path))
      self.init(
        path: item.path, id: item.id, isGood: true, sender: senders.shown(acceptance.card.key), signature: .valid,
        isEncrypted: false, reason: nil)
    } catch {
      let isForged = (error as? IdentityError)?.code == .badSignature
      self.init(
        path: item.path, id: item.id, isGood: false, sender: "unknown", signature: isForged ? .invalid : .unknown,
        isEncrypted: false, reason: (error as? IdentityError)?.message ?? "\(BuckiaError.wrapped(error))")
    }
  }
}

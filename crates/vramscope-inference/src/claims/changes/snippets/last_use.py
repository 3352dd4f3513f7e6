loss = loss_of(result)
del result  # after its last use: and what else holds the tensor of this line
